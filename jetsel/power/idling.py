"""Measures idle power: its mean, how well that is known, and how it drifts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import datetime, timezone
from statistics import fmean, linear_regression, stdev

from jetsel.errors import CalibrationError, PowerError
from jetsel.power.finding import find
from jetsel.power.idle import Idle
from jetsel.power.integration import FEWEST, add_up, too_few
from jetsel.power.machine import Facts, look
from jetsel.power.processor import OtherWork
from jetsel.power.sampler import READY_S, Sampler
from jetsel.power.settings import Settings

BLOCKS = 12  # of the whole time, each longer than power remembers what it was, so that their means are independent
T_MEAN = 2.201
"""Student's t, 95 % on both sides, for 12 - 1 degrees of freedom."""
Z = 1.96  # standard deviations of a normal distribution that hold 95 % of it on both sides
LARGEST_DRIFT = 0.05  # of the mean over the whole measurement: past that the machine was not at rest
AGAIN = "leave the machine alone and run `jetsel power calibrate` again"


def measure_here(settings: Settings, seconds: float, with_load: bool) -> Idle:
    """Measure the idle power of this board. with_load: whatever other programs do counts as idle power.

    Raises PowerError where the sensors cannot be read, CalibrationError as `measure` does.
    """
    found = find(settings)
    steps = [rail.resolution_w or 0.0 for rail in found.total]
    found.close()
    sampler = Sampler(settings)
    try:
        if not sampler.ready(READY_S) or sampler.reason is not None:
            raise PowerError(
                f"power cannot be read: {sampler.reason or 'the sensors do not answer'}; see: jetsel doctor"
            )
        busy = (lambda: None) if with_load else OtherWork().found
        # Errors of rounding are independent of each other: their squares add up.
        return measure(sampler, seconds, found.board_name, look(settings), busy, math.hypot(*steps))
    finally:
        sampler.stop()


def measure(
    sampler: Sampler,
    seconds: float,
    board: str | None,
    facts: Facts,
    busy: Callable[[], str | None],
    step_w: float = 0.0,
    wait: Callable[[float], None] = time.sleep,
) -> Idle:
    """Measure for about so many seconds (60 serve well), and return what was found.

    board: by the table of boards, None where it is in none. busy: says in words why the machine is not at rest, None
    where it is; asked before and after each of 12 times. step_w: between two values that the sensor can tell apart.
    wait: sleeps. Raises CalibrationError with the repair: no samples, a machine that was busy, power that drifted.
    """
    means_w, samples, new_values = [], 0, 0
    _refuse(busy())
    begin_ns = sampler.now()
    for _ in range(BLOCKS):
        wait(seconds / BLOCKS)
        end_ns = sampler.now()
        block = sampler.between(begin_ns, end_ns)
        whole = add_up(block, sampler.stale_after_s)
        _refuse(sampler.reason)
        _refuse(busy())
        if whole.mean_w is None or not whole.is_whole:
            raise CalibrationError(
                "idle power was not measured: power could not be read all the time: see `jetsel power`"
            )
        means_w.append(whole.mean_w)
        samples, new_values, begin_ns = samples + len(block) - 1, new_values + whole.new_values, end_ns
    if new_values < FEWEST:
        raise CalibrationError(f"idle power was not measured: {too_few(new_values, seconds)}: measure for longer")
    mean_w = fmean(means_w)
    drift_w_per_min = linear_regression(range(BLOCKS), means_w).slope * BLOCKS / (seconds / 60)
    if abs(drift_w_per_min) * seconds / 60 > LARGEST_DRIFT * mean_w:
        _refuse(f"it drifted by {drift_w_per_min:+.2g} W/min around {mean_w:.3g} W: wait until the board has settled")
    return Idle(
        mean_w=mean_w,
        # All of a quiet board's samples are off by the same part of a step.
        half_width_w=math.hypot(T_MEAN * stdev(means_w) / math.sqrt(BLOCKS), Z * step_w / math.sqrt(12)),
        drift_w_per_min=drift_w_per_min,
        samples=samples,
        seconds=seconds,
        rails=sampler.total_of,
        board=board or facts.board.value,
        power_mode=facts.power_mode.value,
        measured_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        facts=facts,
    )


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise CalibrationError(f"idle power was not measured: {reason}: {AGAIN}")
