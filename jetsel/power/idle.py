"""The power of a board at rest: what windows deduct, measured by `jetsel power calibrate` and kept in a file."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from jetsel import store
from jetsel.errors import CalibrationError
from jetsel.power.machine import Facts

REPAIR = "run `jetsel power calibrate`"
FORMAT = 2
"""1 had in it what a thousand readings a second took."""

MAX_BYTES = 1 << 20
"""Past this a file is no measurement: one is under 10 KB."""


class Idle(Struct, frozen=True, kw_only=True):
    """Idle power under the conditions in which it was measured.

    mean_w: of the rails' sum. half_width_w: half of the 95 % interval. drift_w_per_min: its slope. samples: readings.
    board, power_mode: None where they are unknown. measured_at: UTC, ISO 8601. facts: all that the board said of
    itself, to compare later; None where it was not asked.
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
    facts: Facts | None = None
    format: int = FORMAT


def save(idle: Idle, folder: Path) -> Path:
    """Write it in place of what was measured before on this board in this power mode, and return the file.

    The new file is written under a temporary name, flushed and renamed, so that there is a whole one at every moment.
    Where it raises CalibrationError, the old one stays.
    """
    target = folder / file_name(idle.board, idle.power_mode)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        store.replace(target, msgspec.json.format(msgspec.json.encode(idle), indent=2) + b"\n")
    except OSError as fault:
        raise CalibrationError(
            f"{target}: idle power was not saved ({fault}), what was measured before stays: use an account that may "
            "write there, or set [power] calibration to a folder of yours"
        ) from fault
    return target


def load(folder: Path, board: str | None, power_mode: str | None, rails: tuple[str, ...]) -> Idle:
    """Read what was measured on this board in this power mode, of these rails.

    Raises CalibrationError that says why there is none, with the repair.
    """
    path = folder / file_name(board, power_mode)
    try:
        data = store.read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        raise CalibrationError(
            f"{path}: idle power was not measured on {_named(board, power_mode)}: {REPAIR}"
        ) from None
    except OSError as fault:
        raise CalibrationError(f"{path}: {fault.strerror}: let this account read it, or {REPAIR}") from fault
    try:
        idle = msgspec.json.decode(data, type=Idle)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise CalibrationError(f"{path}: is no measurement of idle power ({fault}): {REPAIR}") from fault
    if idle.format != FORMAT:
        raise CalibrationError(f"{path}: has format {idle.format}, not {FORMAT}, which is read here: {REPAIR}")
    if sorted(idle.rails) != sorted(rails):
        raise CalibrationError(
            f"{path}: was measured of {' + '.join(idle.rails)}, and the total is {' + '.join(rails)} now: {REPAIR}"
        )
    return idle


def file_name(board: str | None, power_mode: str | None) -> str:
    """Return the name of the file for a board and a power mode; no two share one."""
    names = (
        "unknown" if name is None else "=" + quote(name, safe=" ").replace(" ", "_") for name in (board, power_mode)
    )
    return f"idle-{'-'.join(names)}.json"


def _named(board: str | None, power_mode: str | None) -> str:
    mode = "an unknown power mode" if power_mode is None else f"power mode {power_mode}"
    return f"{board or 'an unknown board'} in {mode}"
