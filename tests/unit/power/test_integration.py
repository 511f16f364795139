"""Energy of windows, by hand: the trapezoid, counters, idle power, and when a window has no energy."""

from __future__ import annotations

import math

import pytest

from jetsel.power.integration import FEWEST, Reading, Sample, above_idle, add_up

STALE_S = 0.25


def window(*watts: float, step_s: float = 0.1) -> list[Sample]:
    """Samples one after the other, each a new value."""
    return [Sample(round(index * step_s * 1e9), each) for index, each in enumerate(watts)]


def test_power_runs_straight_from_sample_to_sample_and_idle_power_is_deducted() -> None:
    samples = window(3.0, 5.0, 9.0, 9.0, 4.0, *[3.0] * 7)  # 0.4 + 0.7 + 0.9 + 0.65 + 0.35 + 6 x 0.3 J in 1.1 s
    found = above_idle(samples, 3.0, STALE_S)
    assert found == Reading(pytest.approx(1500.0), None, 11)
    assert add_up(samples, STALE_S).mean_w == pytest.approx(4.8 / 1.1)


def test_of_counters_the_difference_counts_whatever_lies_between() -> None:
    counted = [Sample(index * 100_000_000, 0.0, joules) for index, joules in enumerate([7.0, *[9.0] * 10, 27.0])]
    assert above_idle(counted, 10.0, STALE_S).energy_mj == pytest.approx(20_000 - 11_000)
    both = [sample._replace(power_w=2.0) for sample in counted]
    assert above_idle(both, 10.0, STALE_S).energy_mj == pytest.approx(20_000 + 2_200 - 11_000)


def test_fewer_than_ten_new_values_are_no_energy_and_the_reason_says_how_many() -> None:
    enough = [sample._replace(is_new=index % 2 == 1) for index, sample in enumerate(window(*[8.0] * 2 * FEWEST))]
    assert above_idle(enough, 3.0, STALE_S).reason is None
    found = above_idle(enough[:-1], 3.0, STALE_S)
    assert (found.energy_mj, found.samples) == (None, FEWEST - 1)
    assert "9 new values" in (found.reason or "")


def test_between_samples_too_far_apart_power_is_not_known() -> None:
    near = window(*[8.0] * 12, step_s=STALE_S)
    assert above_idle(near, 3.0, STALE_S).energy_mj == pytest.approx(5.0 * 11 * STALE_S * 1e3)
    apart = [*near, Sample(near[-1].time_ns + 251_000_000, 8.0)]
    found = above_idle(apart, 3.0, STALE_S)
    assert found.energy_mj is None
    assert "0.25 s of the window were not sampled" in (found.reason or "")
    whole = add_up(apart, STALE_S)
    assert (whole.known_s, whole.length_s) == pytest.approx((11 * STALE_S, 11 * STALE_S + 0.251))
    assert whole.energy_j == pytest.approx(8.0 * 11 * STALE_S)


def test_a_reading_that_failed_leaves_the_window_without_energy_and_the_sum_without_that_time() -> None:
    samples = window(*[8.0] * 20)
    samples[5] = samples[5]._replace(power_w=math.nan)
    assert above_idle(samples, 3.0, STALE_S).energy_mj is None
    assert add_up(samples, STALE_S).known_s == pytest.approx(1.7)
    assert add_up(samples, STALE_S).energy_j == pytest.approx(8.0 * 1.7)


@pytest.mark.parametrize("samples", [[], window(8.0)])
def test_no_samples_are_no_energy(samples: list[Sample]) -> None:
    assert above_idle(samples, 3.0, STALE_S).energy_mj is None
    assert add_up(samples, STALE_S).mean_w is None
