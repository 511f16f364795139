"""Energy of a window: hand-worked trapezoids, reasons where it cannot be known, and an uncertainty that holds."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from jetsel.power.integration import NO_IDLE, NO_READING, NOT_KEPT, integrate
from jetsel.power.samples import Samples
from tests.unit.power.playing import ns, samples

IDLE = SimpleNamespace(mean_w=3.0, half_width_w=0.0)


def every(period_s: float, power_w: list[float], **more: float) -> Samples:
    return samples([i * period_s for i in range(len(power_w))], power_w, period_s=period_s, **more)


def test_constant_power_takes_watts_above_idle_times_seconds() -> None:
    reading = integrate(every(0.001, [8.0] * 100), ns(0.0105), ns(0.0605), IDLE)
    assert reading.energy_mj == pytest.approx(5 * 50)
    assert (reading.samples, reading.reason) == (50, None)


def test_on_constant_power_only_half_a_swing_at_each_edge_is_in_doubt() -> None:
    # A quarter of 5 W for 1 ms on either side.
    assert integrate(every(0.001, [8.0] * 100), ns(0.0105), ns(0.0605), IDLE).uncertainty_mj == pytest.approx(2.5)


def test_power_at_the_edges_is_interpolated() -> None:
    # 3, 5, 7 W at 0, 1, 2 s: from 0.5 to 1.5 s it runs from 4 to 6 W, above idle 1 to 3 W: 2 J. One sample is inside.
    rising = every(1.0, [3.0, 5.0, 7.0, 9.0])
    assert integrate(rising, ns(0.5), ns(2.5), IDLE).energy_mj == pytest.approx(1e3 * (1 + 5) / 2 * 2)


def test_a_sample_just_at_an_edge_is_inside() -> None:
    assert integrate(every(0.001, [8.0] * 10), ns(0.002), ns(0.004), IDLE).samples == 3


def test_power_below_idle_is_a_negative_energy_and_not_zero() -> None:
    assert integrate(every(0.001, [2.0] * 10), ns(0.002), ns(0.004), IDLE).energy_mj == pytest.approx(-2)


def test_unevenly_spaced_samples_count_by_the_time_between_them() -> None:
    # 3 W, then 8 W from 1 to 4 s with nothing in between: 2.5 J in the rise, 15 J after it.
    uneven = samples([0, 1, 4, 5], [3.0, 8.0, 8.0, 8.0], period_s=1.0)
    assert integrate(uneven, ns(0), ns(4), IDLE).energy_mj == pytest.approx(2500 + 15_000)


@pytest.mark.parametrize(
    ("begin_s", "end_s", "inside"), [(0.0102, 0.0108, 0), (0.0102, 0.0112, 1)], ids=["none inside", "one inside"]
)
def test_below_two_samples_inside_the_energy_is_unknown(begin_s: float, end_s: float, inside: int) -> None:
    reading = integrate(every(0.001, [8.0] * 100), ns(begin_s), ns(end_s), IDLE)
    assert (reading.energy_mj, reading.uncertainty_mj, reading.samples) == (None, None, inside)
    assert reading.reason is not None
    assert "two are needed" in reading.reason


@pytest.mark.parametrize("gap", [1, 2, 5])
def test_an_instant_without_reading_inside_or_beside_an_edge_makes_the_energy_unknown(gap: int) -> None:
    power_w = [8.0] * 10
    power_w[gap] = math.nan
    assert integrate(every(0.001, power_w), ns(0.0015), ns(0.0065), IDLE) == (None, NO_READING, 0, None)


def test_an_instant_without_reading_elsewhere_does_not_matter() -> None:
    power_w = [8.0] * 10
    power_w[0] = power_w[9] = math.nan
    assert integrate(every(0.001, power_w), ns(0.0015), ns(0.0065), IDLE).energy_mj == pytest.approx(25)


def unknown(power_w: list[float], bound_s: float) -> Samples:
    known = every(0.001, power_w)
    return Samples(known.times_ns, known.power_w, None, known.period_s, bound_s)


def test_equal_readings_of_a_sensor_of_unknown_period_are_no_samples() -> None:
    reading = integrate(unknown([3.0] * 200, 0.1), ns(0.01), ns(0.06), IDLE)
    assert (reading.energy_mj, reading.samples) == (None, 0)
    assert "it may be every 100 ms only" in (reading.reason or "")
    assert integrate(unknown([3.0] * 200, 0.1), ns(0.01), ns(0.13), IDLE).samples == 1


def test_over_long_windows_a_value_that_stands_counts_once_for_as_long_as_it_may() -> None:
    reading = integrate(unknown([8.0] * 1000, 0.1), ns(0.01), ns(0.96), IDLE)
    assert (reading.energy_mj, reading.samples) == (pytest.approx(5 * 950), 9)
    # What came before or after may be the idle power's size off for half of 100 ms at each edge.
    assert reading.uncertainty_mj == pytest.approx(3.0 * 100 + 2.5)


def test_changes_are_samples_whatever_the_period_is_and_as_wide_as_it_may_be() -> None:
    burst = [3.0] * 100 + [5.0] + [8.0] * 48 + [3.0] * 100
    reading = integrate(unknown(burst, 0.03), ns(0.0995), ns(0.1495), IDLE)
    assert reading.samples == 4  # the changes at 100, 101 and 149 ms, and 8 W stood for 48 ms
    assert reading.uncertainty_mj is not None
    assert reading.uncertainty_mj >= 5 * 30  # 5 W on the wrong side of either edge, for 15 ms of what lay inside


def test_without_idle_power_the_reason_names_the_command() -> None:
    assert integrate(every(0.001, [8.0] * 10), ns(0.002), ns(0.005), None) == (None, NO_IDLE, 0, None)
    assert "jetsel power calibrate" in NO_IDLE


def test_a_window_that_began_before_the_first_sample_was_not_kept() -> None:
    assert integrate(samples([1.0, 1.001, 1.002], [8.0] * 3), ns(0.999), ns(1.002), IDLE).reason == NOT_KEPT
    assert integrate(samples([], []), ns(0), ns(1), IDLE).reason == NOT_KEPT


def test_after_the_last_sample_its_value_is_held_and_the_uncertainty_is_wider() -> None:
    known = every(0.001, [8.0] * 100)
    whole, held = integrate(known, ns(0.05), ns(0.099), IDLE), integrate(known, ns(0.05), ns(0.109), IDLE)
    assert held.energy_mj == pytest.approx(5 * 59)
    assert whole.uncertainty_mj is not None
    assert held.uncertainty_mj is not None
    assert held.uncertainty_mj >= whole.uncertainty_mj + 5 * 10  # it may have fallen to idle for the last 10 ms


def test_a_window_that_ends_long_after_the_last_sample_is_unknown() -> None:
    reading = integrate(every(0.001, [8.0] * 100), ns(0.05), ns(0.5), IDLE)
    assert reading.energy_mj is None
    assert reading.reason is not None
    assert reading.reason.startswith("the samples end 401 ms before the window does")


def test_a_window_without_length_is_unknown() -> None:
    assert integrate(every(0.001, [8.0] * 10), ns(0.005), ns(0.005), IDLE).reason == "the window has no length"


def test_quantisation_does_not_average_out_on_constant_power() -> None:
    # Every sample is off by the same, of a standard deviation of 0.12 / sqrt(12) W: over 2 s, and 1.96 of them.
    quantised = every(0.001, [8.04] * 2100, resolution_w=0.12)
    reading = integrate(quantised, ns(0.05), ns(2.05), IDLE)
    assert reading.uncertainty_mj == pytest.approx(1.96 * 0.12 / math.sqrt(12) * 2000, rel=1e-3)


def test_the_error_of_the_idle_power_counts_for_the_whole_window() -> None:
    idle = SimpleNamespace(mean_w=3.0, half_width_w=0.1)
    assert integrate(every(0.001, [8.0] * 600), ns(0.05), ns(0.55), idle).uncertainty_mj == pytest.approx(
        math.hypot(50, 2.5)
    )


def test_a_jump_may_lie_anywhere_between_two_samples() -> None:
    # 5 W in a gap of 10 ms: the jump may have come right after the first or right before the second sample.
    jump = every(0.01, [3.0] * 5 + [8.0] * 5)
    reading = integrate(jump, ns(0.02), ns(0.07), IDLE)
    assert reading.uncertainty_mj is not None
    assert reading.uncertainty_mj >= 25


def test_samples_too_far_apart_for_a_swing_of_the_load_never_claim_ten_percent() -> None:
    # Every 10 ms a load of that period looks constant, and half of what is read may be wrong.
    reading = integrate(every(0.01, [8.0] * 400), ns(0.5), ns(3.5), IDLE)
    assert reading.energy_mj is not None
    assert reading.uncertainty_mj is not None
    assert reading.uncertainty_mj > 0.1 * reading.energy_mj


def test_a_load_in_step_with_the_samples_is_not_taken_for_known() -> None:
    # High for 1.5 of 3 ms; samples every 1 ms see it high twice in each period, or once: a third off.
    reading = integrate(every(0.001, [8.0, 8.0, 3.0] * 200), ns(0.03), ns(0.33), IDLE)
    assert reading.energy_mj is not None
    assert reading.uncertainty_mj is not None
    assert reading.uncertainty_mj > abs(reading.energy_mj - 2.5 * 300)


def test_noise_averages_out_over_long_windows() -> None:
    noisy = every(0.001, (8 + np.random.default_rng(7).normal(0, 0.3, 3100)).tolist())
    short, long = (integrate(noisy, ns(0.05), ns(0.05 + length_s), IDLE) for length_s in (0.1, 3.0))
    assert short.energy_mj is not None
    assert long.energy_mj is not None
    assert short.uncertainty_mj is not None
    assert long.uncertainty_mj is not None
    assert long.uncertainty_mj / long.energy_mj < 0.4 * short.uncertainty_mj / short.energy_mj
    assert abs(long.energy_mj - 15_000) <= long.uncertainty_mj


def test_after_seconds_no_load_keeps_step_with_the_samples() -> None:
    steps = every(0.001, ([3.0] * 5 + [8.0] * 5) * 3100)
    short, long = (integrate(steps, ns(0.05), ns(0.05 + length_s), IDLE) for length_s in (3.0, 30.0))
    assert short.uncertainty_mj is not None
    assert long.uncertainty_mj is not None
    assert long.uncertainty_mj == pytest.approx(short.uncertainty_mj * math.sqrt(10), rel=0.05)


@pytest.mark.parametrize("rate_hz", [100, 350, 1000])
@pytest.mark.parametrize("period_ms", [2, 5, 10, 20, 50, 300])
def test_no_window_is_off_by_ten_percent_without_saying_so(rate_hz: int, period_ms: int) -> None:
    draw = np.random.default_rng(rate_hz * period_ms)
    period_s = period_ms / 1e3

    def energy_j(at_s: np.ndarray) -> np.ndarray:  # of a square wave of 3 W and 8 W, above 3 W
        periods, into_s = np.divmod(at_s, period_s)
        return 5 * (periods * period_s / 2 + np.minimum(into_s, period_s / 2))

    for _ in range(5):
        times_s = np.arange(0, 3.5, 1 / rate_hz) + draw.uniform(0, period_s)
        seen_w = 3 + (energy_j(times_s) - energy_j(times_s - 140e-6)) / 140e-6  # a conversion of 140 us
        sampled = Samples((times_s * 1e9).astype(np.int64), seen_w, None, 1 / rate_hz)
        for length_s in (0.002, 0.005, 0.01, 0.02, 0.05, 0.3, 3.0):
            begin_s = draw.uniform(0.1, 3.4 - length_s)
            reading = integrate(sampled, ns(begin_s), ns(begin_s + length_s), IDLE)
            if reading.energy_mj is None:
                continue
            truth_mj = 1e3 * float(np.diff(energy_j(np.array([begin_s, begin_s + length_s])))[0])
            error_mj = abs(reading.energy_mj - truth_mj)
            told = reading.uncertainty_mj
            assert told is not None
            assert (
                error_mj <= 0.1 * truth_mj + 1e-9 or told >= error_mj or told >= 0.1 * max(truth_mj, reading.energy_mj)
            )
