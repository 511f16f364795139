"""Measures and stores idle power, which windows deduct, and checks whether the machine is idle."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from statistics import fmean, linear_regression, stdev
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Struct

from jetsel.base import files
from jetsel.base.errors import CalibrationError, PowerError
from jetsel.power.finding import PowerSettings, find_rails
from jetsel.power.integration import FEWEST_VALUES, add_up, too_few_reason
from jetsel.power.machine import BoardFacts, read_facts
from jetsel.power.sampler import READY_S, Sampler
from jetsel.power.sysfs import read_text

BUSY_CORES = 0.1
"""Cores that other programs may keep busy: an idle desktop or board uses 1 to 3 % of all its cores."""
_TICKS = os.sysconf("SC_CLK_TCK")


class OtherWork:
    """Detects work of other programs since its creation or the last question."""

    def __init__(self) -> None:
        self._before = _others_busy_s()

    def reason(self) -> str | None:
        """Return why the machine was not idle since the last question, None if it was or this is unknown."""
        (then_s, then_busy_s), (now_s, now_busy_s) = self._before, _others_busy_s()
        self._before = now_s, now_busy_s
        if then_busy_s is None or now_busy_s is None or now_s - then_s < 0.1:
            return None
        cores = (now_busy_s - then_busy_s) / (now_s - then_s)
        if cores <= BUSY_CORES:
            return None
        return f"other programs kept {cores:.2f} cores busy (if they always do, add --with-load)"


class ProcessorTimes(NamedTuple):
    """Time since start-up that all cores together were busy, and that the hypervisor took."""

    busy_s: float
    stolen_s: float
    cores: int


def read_processor_times(root: Path) -> ProcessorTimes | None:
    """Return the times in proc/stat below this folder, None if it is unreadable.

    proc(5): user, nice, system, idle, iowait, irq, softirq, steal, ...
    """
    lines = read_text(root / "proc/stat").splitlines()
    total = lines[0].split()[1:9] if lines else []
    if len(total) < 8:
        return None
    user, nice, system, _, _, irq, softirq, steal = (int(ticks) / _TICKS for ticks in total)
    cores = sum(line.startswith("cpu") for line in lines) - 1
    return ProcessorTimes(user + nice + system + irq + softirq, steal, cores)


def _others_busy_s() -> tuple[float, float | None]:
    """Return the time, and the processor time of all other processes since start-up, None if unknown."""
    description = read_processor_times(Path("/"))
    return time.monotonic(), None if description is None else description.busy_s - time.process_time()


REPAIR = "run `jetsel power calibrate`"
FORMAT = 2
"""Format 1 included the power of a thousand readings a second."""

MAX_BYTES = 1 << 20
"""A larger file is not a measurement, which has under 10 KB."""


class IdlePower(Struct, frozen=True, kw_only=True):
    """Idle power, with the conditions of its measurement.

    mean_w: of the rails' sum. half_width_w: half of the 95 % interval. drift_w_per_min: its slope. samples: number of
    readings. board, power_mode: None if unknown. measured_at: UTC, ISO 8601. facts: state of the board for later
    comparison; None if it was not read.
    """

    mean_w: float
    half_width_w: float
    drift_w_per_min: float
    samples: int
    seconds: float
    rails: tuple[str, ...]
    board: str | None
    power_mode: str | None
    measured_at: str
    facts: BoardFacts | None = None
    format: int = FORMAT


def save_idle(idle: IdlePower, folder: Path) -> Path:
    """Replace the measurement of this board and power mode; return the file.

    The file is replaced in one step, so that a whole one always exists. If CalibrationError is raised, the old one
    remains.
    """
    target = folder / file_name(idle.board, idle.power_mode)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files.replace(target, msgspec.json.format(msgspec.json.encode(idle), indent=2) + b"\n")
    except OSError as fault:
        raise CalibrationError(
            f"{target}: idle power was not saved ({fault}), the earlier measurement is kept: use an account that may "
            "write there, or set [power] calibration to a folder of yours"
        ) from fault
    return target


def load_idle(folder: Path, board: str | None, power_mode: str | None, rails: tuple[str, ...]) -> IdlePower:
    """Return the measurement of this board and power mode for these rails.

    Raises CalibrationError with the reason and the repair if there is none.
    """
    path = folder / file_name(board, power_mode)
    try:
        data = files.read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        raise CalibrationError(
            f"{path}: idle power was not measured on {_conditions_in_words(board, power_mode)}: {REPAIR}"
        ) from None
    except OSError as fault:
        raise CalibrationError(f"{path}: {fault.strerror}: let this user read it, or {REPAIR}") from fault
    try:
        idle = msgspec.json.decode(data, type=IdlePower)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise CalibrationError(f"{path}: is not a measurement of idle power ({fault}): {REPAIR}") from fault
    if idle.format != FORMAT:
        raise CalibrationError(f"{path}: has format {idle.format}, but this jetsel reads format {FORMAT}: {REPAIR}")
    if sorted(idle.rails) != sorted(rails):
        raise CalibrationError(
            f"{path}: was measured on {' + '.join(idle.rails)}, but the total is now {' + '.join(rails)}: {REPAIR}"
        )
    return idle


def file_name(board: str | None, power_mode: str | None) -> str:
    """Return the file name for a board and a power mode; it is unique."""
    names = (
        "unknown" if name is None else "=" + quote(name, safe=" ").replace(" ", "_") for name in (board, power_mode)
    )
    return f"idle-{'-'.join(names)}.json"


def _conditions_in_words(board: str | None, power_mode: str | None) -> str:
    mode = "an unknown power mode" if power_mode is None else f"power mode {power_mode}"
    return f"{board or 'an unknown board'} in {mode}"


BLOCKS = 12  # parts of the whole time, each long enough to make their means independent
T_MEAN = 2.201
"""Student's t, 95 % two-sided, for 12 - 1 degrees of freedom."""
Z = 1.96  # standard deviations of the two-sided 95 % interval of a normal distribution
LARGEST_DRIFT = 0.05  # share of the mean, over the whole measurement; more means that the machine was not idle
AGAIN = "run `jetsel power calibrate` again while nothing else uses the machine"


def measure_here(settings: PowerSettings, seconds: float, with_load: bool) -> IdlePower:
    """Measure the idle power of this board. with_load: count work of other programs as idle power.

    Raises PowerError if the sensors cannot be read, CalibrationError as `measure` does.
    """
    rails = find_rails(settings)
    steps = [rail.resolution_w or 0.0 for rail in rails.total]
    rails.close()
    sampler = Sampler(settings)
    try:
        if not sampler.ready(READY_S) or sampler.reason is not None:
            raise PowerError(
                f"power cannot be read: {sampler.reason or 'the sensors do not answer'}; see: jetsel doctor"
            )
        busy = (lambda: None) if with_load else OtherWork().reason
        # Rounding errors are independent, so their squares add up.
        return measure(sampler, seconds, rails.board_name, read_facts(settings), busy, math.hypot(*steps))
    finally:
        sampler.stop()


def measure(
    sampler: Sampler,
    seconds: float,
    board: str | None,
    facts: BoardFacts,
    busy: Callable[[], str | None],
    step_w: float = 0.0,
    wait: Callable[[float], None] = time.sleep,
) -> IdlePower:
    """Return the idle power, measured for about this number of seconds (60 is a good value).

    board: name in the table of boards, None if unknown. busy: returns why the machine is not idle, None if it is;
    called before and after each of 12 parts. step_w: resolution of the sensor. wait: sleeps. Raises CalibrationError
    with the repair if there are no samples, the machine was busy, or power drifted.
    """
    means_w, samples, new_values = [], 0, 0
    _raise_if(busy())
    begin_ns = sampler.now()
    for _ in range(BLOCKS):
        wait(seconds / BLOCKS)
        end_ns = sampler.now()
        block = sampler.between(begin_ns, end_ns)
        whole = add_up(block, sampler.stale_after_s)
        _raise_if(sampler.reason)
        _raise_if(busy())
        if whole.mean_w is None or not whole.is_whole:
            raise CalibrationError("idle power was not measured: some power readings failed: see `jetsel power`")
        means_w.append(whole.mean_w)
        samples, new_values, begin_ns = samples + len(block) - 1, new_values + whole.new_values, end_ns
    if new_values < FEWEST_VALUES:
        raise CalibrationError(
            f"idle power was not measured: {too_few_reason(new_values, seconds)}: measure for longer"
        )
    mean_w = fmean(means_w)
    drift_w_per_min = linear_regression(range(BLOCKS), means_w).slope * BLOCKS / (seconds / 60)
    if abs(drift_w_per_min) * seconds / 60 > LARGEST_DRIFT * mean_w:
        _raise_if(f"it drifted by {drift_w_per_min:+.2g} W/min around {mean_w:.3g} W: wait until the board has settled")
    return IdlePower(
        mean_w=mean_w,
        # All samples of a quiet board have the same rounding error.
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


def _raise_if(reason: str | None) -> None:
    if reason is not None:
        raise CalibrationError(f"idle power was not measured: {reason}: {AGAIN}")
