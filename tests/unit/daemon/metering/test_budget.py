"""The power budget by hand: the running mean, one level at a time, and back with hysteresis."""

from __future__ import annotations

import math

import pytest

from jetsel.daemon.metering.budget import Budget, battery_status, low_battery
from jetsel.power.machine import Battery, Known


def looked(budget: Budget, begin_s: int, end_s: int, power_w: float | None) -> list[tuple[int, int]]:
    """Look once a second; return (second, level) where the level changed."""
    return [(t, budget.level) for t in range(begin_s, end_s) if budget.look(float(t), power_w)]


def test_the_mean_begins_with_the_first_reading_and_follows_with_a_time_constant_of_ten_seconds() -> None:
    budget = Budget(100.0, 3)
    assert budget.mean_w is None
    budget.look(0.0, 3.0)
    assert budget.mean_w == 3.0
    budget.look(10.0, 8.0)
    assert budget.mean_w == pytest.approx(3 + 5 * (1 - math.exp(-1)))  # 6.16 W
    budget.look(10.0 + 10 * math.log(2), 0.0)
    assert budget.mean_w == pytest.approx((3 + 5 * (1 - math.exp(-1))) / 2)


def test_above_the_budget_it_goes_one_level_at_a_time_ten_seconds_after_one_reading_and_at_once_after_many() -> None:
    assert looked(Budget(5.0, 2), 0, 60, 8.0) == [(10, 1), (20, 2)]
    late = Budget(5.0, 3)
    assert looked(late, 0, 100, 1.0) == []
    # From 1 W to 100 W the mean is 100 - 99 exp(-t / 10), with t from 99: 10.4 W at once.
    assert looked(late, 100, 105, 100.0) == [(100, 1)]


def above(budget: Budget, levels: int) -> Budget:
    """Bring it up by so many levels, with 60 W from second 0 on: the last comes at second 10 x levels."""
    assert looked(budget, 0, 10 * levels + 1, 60.0) == [(10 * level, level) for level in range(1, levels + 1)]
    return budget


def test_between_nine_tenths_and_the_whole_the_level_stays_for_good() -> None:
    budget = above(Budget(50.0, 2), 1)
    # To 46 W, 92 % of the budget, the mean falls below 50 W after 10 ln(14 / 4) = 12.5 s: before that comes level 2.
    assert looked(budget, 11, 1000, 46.0) == [(20, 2)]


def test_below_nine_tenths_it_steps_back_twenty_seconds_after_each_step() -> None:
    budget = above(Budget(50.0, 2), 2)
    # From 60 W to 0 W the mean is below 45 W after 10 ln(60 / 45) = 2.9 s. The last step was at 20.
    assert looked(budget, 21, 100, 0.0) == [(40, 1), (60, 0)]


def test_unknown_power_changes_nothing() -> None:
    budget = Budget(5.0, 2)
    assert looked(budget, 0, 50, None) == []
    assert budget.mean_w is None
    assert looked(budget, 50, 61, 9.0) == [(60, 1)]
    assert looked(budget, 61, 200, None) == []
    assert (budget.mean_w, budget.level) == (pytest.approx(9.0), 1)


def test_without_a_budget_the_mean_is_kept_and_no_level_is() -> None:
    budget = Budget(None, 2)
    assert looked(budget, 0, 50, 9.0) == []
    assert budget.mean_w == pytest.approx(9.0)
    budget.set(5.0, 2)
    assert looked(budget, 50, 51, 9.0) == [(50, 1)]
    budget.set(None, 2)
    assert budget.level == 0


def test_fewer_models_after_a_reload_lower_the_level_to_what_there_is() -> None:
    budget = above(Budget(5.0, 3), 3)
    budget.set(5.0, 1)
    assert budget.level == 1
    assert looked(budget, 31, 32, 60.0) == []


@pytest.mark.parametrize(
    ("battery", "reserve_percent", "saves"),
    [
        (Battery(19.0, True), 20.0, True),
        (Battery(20.0, True), 20.0, False),
        (Battery(5.0, False), 20.0, False),
        (Battery(5.0, None), 20.0, False),
        (Battery(5.0, True), None, False),
        (None, 20.0, False),
    ],
    ids=["below", "at", "charging", "not-told", "no-reserve", "no-battery"],
)
def test_below_its_reserve_a_battery_that_is_emptied_is_spared(
    battery: Battery | None, reserve_percent: float | None, saves: bool
) -> None:
    known = Known(battery, None if battery else "no battery")
    told, status = low_battery(known, reserve_percent), battery_status(known, reserve_percent)
    assert (told is not None) == saves
    assert ("least energy" in (status.state or "")) == saves
    assert (status.state is None) == (reserve_percent is None)
    assert (status.reason is None) == (battery is not None and battery.is_discharging is not None)
    assert status.percent == (None if battery is None else battery.percent)
