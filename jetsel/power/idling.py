"""Measures idle power: its mean, how well that is known, how it drifts, and what the sampling itself takes."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import CalibrationError
from jetsel.power.idle import Idle
from jetsel.power.integration import Cut, cut_out
from jetsel.power.place import Place
from jetsel.power.samples import Samples
from jetsel.power.source import Source
from jetsel.power.uncertainty import Z

PAIRS = 6  # of a time at the slow rate and one at the fast rate; which comes first alternates, so that drift cancels
BLOCKS = 4  # in each time; longer than power remembers what it was, so that their means are independent
BEGIN_S = 2.5  # a sampler that has just started is fast for two seconds, and a moment longer
SETTLE_S = 0.5  # after the rate has changed
TRIES = 4  # of each time, as the sampler is fast by itself now and then, when it looks for the sensor's period
TOO_FAST, TOO_SLOW = 1.5, 0.5  # of the readings that a time should have: past that it was not at its rate
T_PAIRS, T_BLOCKS, T_SLOPE = 2.571, 2.069, 2.074
"""Student's t, 95 % on both sides, for 6 - 1, 24 - 1 and 24 - 2 degrees of freedom."""
LARGEST_DRIFT = 0.05  # of the mean over the whole measurement: past that the machine was not at rest
AGAIN = "leave the machine alone and run `jetsel power calibrate` again"


@dataclass(frozen=True)
class _Time:
    """What was seen while the sampler kept one rate: means of blocks (BLOCKS,) W, their middles in s, samples."""

    means_w: NDArray[np.float64]
    middles_s: NDArray[np.float64]
    samples: int
    hz: float
    period_s: float
    resolution_w: float


class Paced(Source, Protocol):
    """A source that says how often it samples while nothing is open."""

    @property
    def slow_hz(self) -> float: ...  # noqa: D102


def measure(
    sampler: Paced,
    seconds: float,
    place: Place,
    busy: Callable[[], str | None],
    wait: Callable[[float], None] = time.sleep,
) -> Idle:
    """Measure for about so many seconds (60 serve well), and return what was found.

    busy: says in words why the machine is not at rest, None where it is; asked before and after each of 12 times. wait:
    sleeps, so that it can be interrupted. Raises CalibrationError with the repair: no samples, a machine that was busy
    or whose power drifted, a sampler that did not keep to its rates.
    """
    wait(BEGIN_S)
    times: dict[bool, list[_Time]] = {False: [], True: []}
    _refuse(busy())
    for pair in range(PAIRS):
        for fast in (False, True) if pair % 2 == 0 else (True, False):
            times[fast].append(_at_its_rate(sampler, fast, seconds / (2 * PAIRS), wait))
            _refuse(busy())
    return _found(times[False], times[True], seconds, place, sampler.total_of)


def _at_its_rate(sampler: Paced, fast: bool, length_s: float, wait: Callable[[float], None]) -> _Time:
    """Repeat a time until the sampler has kept the rate in all of it that the time is for."""
    for _ in range(TRIES):
        one = _one_time(sampler, fast, length_s, wait)
        if one.hz * one.period_s >= TOO_SLOW if fast else one.hz <= TOO_FAST * sampler.slow_hz + 1 / length_s:
            return one
    wanted = f"{1 / one.period_s:.0f}" if fast else f"{sampler.slow_hz:g}"
    raise CalibrationError(
        f"idle power was not measured: the sampler took {one.hz:.0f} samples a second in place of {wanted}: {AGAIN}"
    )


def _one_time(sampler: Source, fast: bool, length_s: float, wait: Callable[[float], None]) -> _Time:
    if fast:
        sampler.open()
    try:
        wait(SETTLE_S)
        begin_ns = time.monotonic_ns()
        wait(length_s)
        end_ns = time.monotonic_ns()
    finally:
        if fast:
            sampler.shut()
    if sampler.reason is not None:
        raise CalibrationError(f"idle power was not measured: {sampler.reason}")
    return _blocks(sampler.samples(begin_ns, end_ns), begin_ns, end_ns)


def _blocks(samples: Samples, begin_ns: int, end_ns: int) -> _Time:
    edges_ns = np.linspace(begin_ns, end_ns, BLOCKS + 1).astype(np.int64)
    cuts: list[Cut] = []
    for first_ns, last_ns in itertools.pairwise(edges_ns.tolist()):
        cut = cut_out(samples, first_ns, last_ns)
        if isinstance(cut, str):
            raise CalibrationError(f"idle power was not measured: {cut}: see `jetsel power`, then measure again")
        if cut.inside < 2:
            raise CalibrationError(
                f"idle power was not measured: {cut.inside} samples in {cut.length_s:.3g} s are too few: measure "
                "for longer"
            )
        cuts.append(cut)
    return _Time(
        np.array([cut.energy_j() / cut.length_s for cut in cuts]),
        (edges_ns[:-1] + edges_ns[1:]) / 2e9,
        (inside := sum(cut.inside for cut in cuts)),
        inside / (end_ns - begin_ns) * 1e9,
        samples.period_s,
        samples.resolution_w or 0.0,
    )


def _found(slow: list[_Time], fast: list[_Time], seconds: float, place: Place, rails: tuple[str, ...]) -> Idle:
    means_w = np.concatenate([one.means_w for one in fast])
    mean_w = float(np.mean(means_w))
    step_w = (
        Z * fast[0].resolution_w / math.sqrt(12)
    )  # quantisation: all of a quiet board's samples are off by the same
    scatter_w = T_BLOCKS * float(np.std(means_w, ddof=1)) / math.sqrt(len(means_w))
    drift_w_per_min, drift_half_w_per_min = _slope(fast, means_w)
    moved_w = abs(drift_w_per_min) * seconds / 60
    if moved_w > LARGEST_DRIFT * mean_w and abs(drift_w_per_min) > drift_half_w_per_min:
        raise CalibrationError(
            f"idle power was not measured: it drifted by {drift_w_per_min:+.2g} W/min around {mean_w:.3g} W: wait "
            f"until the board has settled, {AGAIN}"
        )
    costs_w = np.array([np.mean(f.means_w) - np.mean(s.means_w) for s, f in zip(slow, fast, strict=True)])
    cost_w = float(np.mean(costs_w))
    cost_scatter_w = T_PAIRS * float(np.std(costs_w, ddof=1)) / math.sqrt(PAIRS)
    cost_half_w = math.hypot(cost_scatter_w, math.sqrt(2) * step_w)
    return Idle(
        mean_w=mean_w,
        half_width_w=math.hypot(scatter_w, step_w),
        drift_w_per_min=drift_w_per_min,
        sampler_w=cost_w if abs(cost_w) > cost_half_w else None,
        sampler_half_width_w=cost_half_w,
        samples=sum(one.samples for one in fast),
        seconds=seconds,
        rails=rails,
        board=place.board,
        power_mode=place.power_mode,
        measured_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        facts=place.facts,
    )


def _slope(times: list[_Time], means_w: NDArray[np.float64]) -> tuple[float, float]:
    """Return the slope of the blocks' means by least squares, and half of its 95 % interval, in W/min."""
    minutes = np.concatenate([one.middles_s for one in times]) / 60
    minutes = minutes - np.mean(minutes)
    spread = float(np.sum(minutes**2))
    slope = float(np.sum(minutes * means_w)) / spread
    left_w = means_w - np.mean(means_w) - slope * minutes
    return slope, T_SLOPE * math.sqrt(float(np.sum(left_w**2)) / (len(means_w) - 2) / spread)


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise CalibrationError(f"idle power was not measured: {reason}: {AGAIN}")
