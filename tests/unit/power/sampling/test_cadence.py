"""The update period of a sensor, found out from when its values change."""

import random
from collections.abc import Callable

import pytest

from jetsel.power.sampling.cadence import SLOWEST_NS, Cadence, averaging_ns

MS = 1_000_000


def polled(value: Callable[[float], int], count: int, gap_ms: float = 1.0) -> Cadence:
    """A cadence that has seen `count` reads, each up to 0.2 ms late, some by much; `value` by time in ms."""
    noise = random.Random(1)
    cadence = Cadence()
    before_ns, last = 0, None
    for number in range(count):
        late_ms = noise.random() * 0.2 + (4.0 if noise.random() < 0.003 else 0.0)
        now_ms = number * gap_ms + late_ms
        now_ns = round(now_ms * MS)
        if now_ns <= before_ns:
            continue
        seen = value(now_ms)
        if last is not None and seen != last:
            cadence.changed(before_ns, now_ns, seen)
        before_ns, last = now_ns, seen
    cadence.search()
    while cadence.is_searching:
        cadence.think()
    return cadence


def noisy(period_ms: float) -> Callable[[float], int]:
    """A register that is written once a period, with noise of a few steps."""
    return lambda now_ms: 375 + random.Random(int((now_ms + 0.37) // period_ms)).randrange(9)


@pytest.mark.parametrize("period_ms", [3.36, 6.6, 12.7, 50.5, 430.0])
def test_the_period_of_a_sensor_that_repeats_values_is_found(period_ms: float):
    reads = max(2000, int(10 * period_ms))
    assert polled(noisy(period_ms), reads).period_ns == pytest.approx(period_ms * MS, rel=0.01)


def test_a_sensor_that_writes_current_and_voltage_one_after_the_other_has_one_period():
    current, voltage = noisy(6.6), noisy(6.6)
    found = polled(lambda now_ms: current(now_ms) * (600 + voltage(now_ms - 1.1)), 2000)
    assert found.period_ns == pytest.approx(6.6 * MS, rel=0.01)


@pytest.mark.parametrize("period_ms", [0.3, 0.84])
def test_a_sensor_with_a_new_value_at_each_read_has_no_known_period(period_ms: float):
    assert polled(noisy(period_ms), 3000).period_ns is None


def test_constant_power_says_nothing():
    cadence = polled(lambda _: 5000, 3000)
    assert cadence.period_ns is None
    assert cadence.bound_ns() == SLOWEST_NS


def test_a_load_that_is_switched_by_a_clock_is_not_taken_for_the_sensors_clock():
    cadence = polled(lambda now_ms: 8000 if now_ms % 200 < 100 else 3000, 5000)
    assert cadence.period_ns is None
    assert cadence.bound_ns() == pytest.approx(200 * MS, abs=10 * MS)  # three changes, two of them of one register


def test_what_a_switched_load_passes_through_makes_no_variety():
    """A sensor faster than the reads, whose value on the way between two levels is another each time."""

    def value(now_ms: float) -> int:
        into_ms = now_ms % 100
        level = 8000 if now_ms % 200 < 100 else 3000
        return random.Random(int(now_ms // 100)).randrange(3000, 8000) if into_ms < 1 else level

    assert polled(value, 5000).period_ns is None


def test_a_period_is_forgotten_when_each_read_has_a_new_value():
    cadence = polled(noisy(6.6), 2000)
    assert cadence.period_ns is not None
    now_ns = 3_000 * MS
    for number in range(60):
        cadence.changed(now_ns, now_ns + MS, number)
        now_ns += MS
    cadence.search()
    while cadence.is_searching:
        cadence.think()
    assert cadence.period_ns is None


def test_until_a_period_is_known_three_changes_bound_it_to_the_time_that_they_took():
    cadence = Cadence()
    for at_ms, value in ((100, 5), (530, 6)):
        cadence.changed((at_ms - 1) * MS, at_ms * MS, value)
    assert cadence.bound_ns() == SLOWEST_NS, "two may be voltage and current"
    cadence.changed(959 * MS, 960 * MS, 5)
    assert cadence.bound_ns() == 861 * MS  # from before the first to after the third


def test_the_bound_is_never_below_the_period_however_the_load_changes():
    for period_ms in (6.6, 50.5, 430.0):
        for at_once_ms in (20, 50, 300):

            def mean(now_ms: float, period_ms: float = period_ms, at_once_ms: float = at_once_ms) -> int:
                end_ms = now_ms // period_ms * period_ms  # a mean of the period before, of bursts every 700 ms
                steps = [end_ms - period_ms * (part + 0.5) / 50 for part in range(50)]
                return round(sum(8000 if step % 700 < at_once_ms else 3000 for step in steps) / 50)

            assert polled(mean, 3000).bound_ns() >= period_ms * MS


def test_a_value_that_is_new_at_each_read_proves_the_period_down_to_two_reads():
    assert polled(noisy(0.3), 3000).bound_ns() < 3 * MS


def test_a_load_between_two_levels_bounds_a_fast_sensor_by_what_it_passes_through():
    """Every 100 ms a change in two steps, 1 to 2 ms apart: no chip's six conversions are longer than six times that."""

    def value(now_ms: float) -> int:
        return 5000 if now_ms % 100 < 1.2 else 8000 if now_ms % 200 < 100 else 3000

    assert polled(value, 5000).bound_ns() <= 20 * MS


def test_a_search_begins_only_after_enough_changes():
    cadence = Cadence()
    cadence.changed(0, MS, 1)
    cadence.search()
    assert not cadence.is_searching


def test_values_that_come_slower_than_single_conversions_can_are_means_of_their_period():
    assert averaging_ns(430 * MS) == 430 * MS
    assert averaging_ns(round(6.6 * MS)) == 0
