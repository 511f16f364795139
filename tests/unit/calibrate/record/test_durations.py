"""Times by turns within a budget, on a clock that is set; intervals by hand and against the printed table."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from jetsel.calibrate.record.bench import half_width, t_quantile
from jetsel.calibrate.record.durations import half_interval, noise, run_by_turns


class Clock:
    """Runs that take what they are given, by a clock of their own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ran: list[str] = []

    def run(self, name: str, duration_ms: float) -> Callable[[], object]:
        def once() -> None:
            self.now_s += duration_ms / 1e3
            self.ran.append(name)

        return once

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.70620), (30, 2.04227), (10**9, 1.95996)])
def test_quantiles_are_those_of_the_printed_table(freedom: int, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, abs=0.001)


def test_the_interval_of_a_mean_by_hand() -> None:
    assert half_width([1.0]) == math.inf
    # Mean 2, variance 1, standard error 1 / sqrt(3), t of 2 degrees of freedom 4.3027.
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.302653 / math.sqrt(3), rel=1e-3)


def test_the_interval_of_a_median_by_hand_heeds_no_outlier() -> None:
    # Median 3, deviations 2, 1, 0, 1, 997, of which the median is 1: 1.96 * 1.2533 * 1.4826 / sqrt(5).
    assert half_interval([1.0, 2.0, 3.0, 4.0, 1000.0]) == pytest.approx(1.6287, abs=1e-4)
    assert half_interval([1.0]) == math.inf


def test_models_run_by_turns_until_the_budget_is_spent() -> None:
    clock = Clock()
    runs = {"s": clock.run("s", 1.0), "l": clock.run("l", 9.0)}
    found = run_by_turns(runs, 10, budget_s=0.025, now=clock)
    assert {name: len(durations_ms) for name, durations_ms in found.items()} == {"s": 3, "l": 3}
    assert found["l"] == pytest.approx([9.0, 9.0, 9.0])
    assert clock.ran == ["s", "l", "s", "l", "s", "l"]


def test_some_rounds_run_although_the_budget_is_spent_and_no_more_than_asked() -> None:
    clock = Clock()
    assert len(run_by_turns({"s": clock.run("s", 5.0)}, 10, budget_s=0.0, least=4, now=clock)["s"]) == 4
    assert len(run_by_turns({"s": clock.run("s", 5.0)}, 2, now=clock)["s"]) == 2


def test_noise_names_the_time_that_is_known_least() -> None:
    quiet = [10.0, 10.1] * 20
    assert noise({"s": quiet}) is None
    # Median 10, median deviation 5: 1.96 * 1.2533 * 1.4826 * 5 / sqrt(6) is 74 % of it.
    assert noise({"s": quiet, "l": [5.0, 10.0, 15.0] * 2}) == "the time of l is known to ±74 %"
    assert noise({"s": [1.0]}) == "the time of s is known only once"
