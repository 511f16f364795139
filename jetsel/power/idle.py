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

BUSY_CORES = 0.1  # cores that other programs may keep busy: an idle desktop or board uses 1 to 3 % of all its cores
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class OtherWork:
    """Detects whether other programs used the processor since it was created, or since the last call of `reason`."""

    def __init__(self) -> None:
        self._before = _others_busy_s()

    def reason(self) -> str | None:
        """Return why the machine was not idle since the last call, None if it was idle or this is unknown."""
        (then_s, then_busy_s), (now_s, now_busy_s) = self._before, _others_busy_s()
        self._before = now_s, now_busy_s
        if then_busy_s is None or now_busy_s is None or now_s - then_s < 0.1:
            return None
        cores = (now_busy_s - then_busy_s) / (now_s - then_s)
        if cores <= BUSY_CORES:
            return None
        return f"other programs kept {cores:.2f} cores busy (if they always do, add --with-load)"


class ProcessorTimes(NamedTuple):
    """Processor time since the machine started, summed over its cores, and the number of running cores."""

    busy_s: float
    stolen_s: float  # taken by the hypervisor
    cores: int


def read_processor_times(root: Path) -> ProcessorTimes | None:
    """Return the times in proc/stat below `root` (normally /), None if it is unreadable.

    proc(5): user, nice, system, idle, iowait, irq, softirq, steal, ...
    """
    lines = read_text(root / "proc/stat").splitlines()
    all_cores = lines[0].split()[1:9] if lines else []
    if len(all_cores) < 8:
        return None
    user, nice, system, _, _, irq, softirq, steal = (int(ticks) / _TICKS_PER_S for ticks in all_cores)
    cores = sum(line.startswith("cpu") for line in lines) - 1
    return ProcessorTimes(user + nice + system + irq + softirq, steal, cores)


def _others_busy_s() -> tuple[float, float | None]:
    """Return time.monotonic() in s, and the processor time of all other processes so far in s, None if unknown."""
    times = read_processor_times(Path("/"))
    return time.monotonic(), None if times is None else times.busy_s - time.process_time()


REPAIR = "run `jetsel power calibrate`"
FORMAT = 2  # format 1 included the power of a thousand readings a second
MAX_BYTES = 1 << 20  # a measurement has under 10 KB


class IdlePower(Struct, frozen=True, kw_only=True):
    """Power of the idle board, with the conditions of its measurement: the content of one JSON file.

    mean_w: mean power, summed over `rails`. half_width_w: half of the mean's 95 % interval. drift_w_per_min: slope of
    the power over the measurement. samples: number of readings. seconds: length. board, power_mode: None if unknown.
    measured_at: UTC, ISO 8601. facts: state of the board, to detect later changes; None if it was not read.
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
    """Write the measurement over the last one of its board and power mode in `folder`; return the file.

    The file is replaced in one step. Raises CalibrationError if that fails; the old file then remains.
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
    """Return the stored idle power of this board (None: unknown) and power mode, measured on exactly these rails.

    Raises CalibrationError with the reason and the repair if there is none.
    """
    path = folder / file_name(board, power_mode)
    try:
        data = files.read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        conditions = _conditions_in_words(board, power_mode)
        raise CalibrationError(f"{path}: idle power was not measured on {conditions}: {REPAIR}") from None
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
    """Return the file name for a board and a power mode, None if unknown; no two pairs share a name."""
    names = (
        "unknown" if name is None else "=" + quote(name, safe=" ").replace(" ", "_") for name in (board, power_mode)
    )
    return f"idle-{'-'.join(names)}.json"


def _conditions_in_words(board: str | None, power_mode: str | None) -> str:
    mode = "an unknown power mode" if power_mode is None else f"power mode {power_mode}"
    return f"{board or 'an unknown board'} in {mode}"


BLOCKS = 12  # parts of the whole time, each long enough to make their means independent
T_MEAN = 2.201  # Student's t, 95 % two-sided, for 12 - 1 degrees of freedom
Z = 1.96  # standard deviations of the two-sided 95 % interval of a normal distribution
LARGEST_DRIFT = 0.05  # share of the mean, over the whole measurement; more means that the machine was not idle
AGAIN = "run `jetsel power calibrate` again while nothing else uses the machine"


def measure_here(settings: PowerSettings, seconds: float, with_load: bool) -> IdlePower:
    """Measure the idle power of this board for about `seconds`.

    with_load: True counts work of other programs as idle power; False refuses it. Raises PowerError if the sensors
    cannot be read, CalibrationError as `measure` does.
    """
    rails = find_rails(settings)
    steps_w = [rail.resolution_w or 0.0 for rail in rails.total]
    rails.close()
    sampler = Sampler(settings)
    try:
        if not sampler.ready(READY_S) or sampler.reason is not None:
            fault = sampler.reason or "the sensors do not answer"
            raise PowerError(f"power cannot be read: {fault}; see: jetsel doctor")
        busy = (lambda: None) if with_load else OtherWork().reason
        # Rounding errors are independent, so their squares add up.
        return measure(sampler, seconds, rails.board_name, read_facts(settings), busy, math.hypot(*steps_w))
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
    """Return the idle power, measured for about `seconds` (60 is a good value) in 12 blocks of equal length.

    board: name in the table of boards, None if unknown. facts: current state of the board. busy: returns why the
    machine is not idle, None if it is; called before and after each block. step_w: resolution of the sensor. wait:
    sleeps. Raises CalibrationError with the repair if there are no samples, the machine was busy, or power drifted.
    """
    means_w, samples, new_values = [], 0, 0
    _raise_if(busy())
    begin_ns = sampler.now()
    for _ in range(BLOCKS):
        wait(seconds / BLOCKS)
        end_ns = sampler.now()
        block = sampler.between(begin_ns, end_ns)
        block_sum = add_up(block, sampler.stale_after_s)
        _raise_if(sampler.reason)
        _raise_if(busy())
        if block_sum.mean_w is None or not block_sum.is_whole:
            raise CalibrationError("idle power was not measured: some power readings failed: see `jetsel power`")
        means_w.append(block_sum.mean_w)
        samples, new_values, begin_ns = samples + len(block) - 1, new_values + block_sum.new_values, end_ns
    if new_values < FEWEST_VALUES:
        reason = too_few_reason(new_values, seconds)
        raise CalibrationError(f"idle power was not measured: {reason}: measure for longer")
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
