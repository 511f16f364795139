"""The power budget by hand: the running means, and what they leave for each request."""

from __future__ import annotations

import math

import pytest

from jetsel.daemon.metering.budget import Budget


def steady(limit_w: float | None, power_w: float, rate_hz: int, each_mj: float | None) -> Budget:
    """Return a budget after five minutes of so many requests a second."""
    budget = Budget(limit_w)
    for second in range(300):
        for _ in range(rate_hz if second else 0):
            budget.spend(each_mj)
        budget.look(float(second), power_w)
    return budget


def test_the_mean_begins_with_the_first_reading_and_follows_with_a_time_constant_of_ten_seconds() -> None:
    budget = Budget(100.0)
    assert budget.mean_w is None
    budget.look(0.0, 3.0)
    assert budget.mean_w == 3.0
    budget.look(10.0, 8.0)
    assert budget.mean_w == pytest.approx(3 + 5 * (1 - math.exp(-1)))  # 6.16 W
    budget.look(10.0 + 10 * math.log(2), 0.0)
    assert budget.mean_w == pytest.approx((3 + 5 * (1 - math.exp(-1))) / 2)


def test_what_the_board_takes_without_requests_is_kept_out_and_the_rest_is_shared() -> None:
    # 8 W, of which 50 requests of 60 mJ take 3 W: without them 5 W, so of 6 W each may have 20 mJ.
    budget = steady(6.0, 8.0, 50, 60.0)
    assert budget.allowed_mj == pytest.approx(20.0, rel=0.01)
    assert budget.is_exceeded
    # At 20 mJ each the board takes 6 W: what is left for each stays the same.
    assert steady(6.0, 6.0, 50, 20.0).allowed_mj == pytest.approx(20.0, rel=0.01)
    assert steady(4.0, 8.0, 50, 60.0).allowed_mj < 0, "the board alone takes more"


def test_what_is_not_known_limits_nothing_and_says_so() -> None:
    for budget, words in (
        (Budget(5.0), "no power has been measured"),
        (steady(5.0, 8.0, 50, None), "no energies"),
        (steady(5.0, 8.0, 0, None), "limits nothing: the mean power is above"),
    ):
        assert budget.status is not None
        assert words in budget.status.state
        assert (budget.allowed_mj, budget.status.allowed_mj) == (math.inf, None)
    assert (steady(None, 8.0, 50, 60.0).allowed_mj, steady(None, 8.0, 50, 60.0).status) == (math.inf, None)


def test_unknown_power_changes_nothing_and_a_reload_changes_the_limit_at_once() -> None:
    budget = steady(6.0, 8.0, 50, 60.0)
    for second in range(300, 400):
        budget.look(float(second), None)
    assert (budget.mean_w, budget.allowed_mj) == (pytest.approx(8.0), pytest.approx(20.0, rel=0.01))
    budget.set(7.0)
    assert budget.allowed_mj == pytest.approx(40.0, rel=0.01)
    budget.set(None)
    assert budget.allowed_mj == math.inf
