"""Traces of power: the file that `jetsel power record` writes, and the rails that `[power] replay` plays from it.

CSV. The first line is a comment: `# jetsel 0.1.0 ` and a JSON object of `board` (or null), `rails`, `total_of` (those
whose sum is the total) and `resolution_w` (each rail's step in watts, or null). Then the columns: `t_s`, seconds from
the first row, and one of watts for each rail. An empty cell is a rail that could not be read then.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from jetsel import __version__
from jetsel.base import files
from jetsel.power.sensors.rail import Detected, Measured, Rail, RailError

MAX_BYTES = 1 << 28
"""Past this a trace is not read, which takes several times as much memory: an hour of four rails at 1000 Hz."""

_MARK = "# jetsel "
_TIME = "t_s"


class _Header(msgspec.Struct, frozen=True):
    board: str | None
    rails: list[str]
    total_of: list[str]
    resolution_w: list[float | None]


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace in memory.

    times_s: (n,) instants, each after the one before. watts: (n, rails), NaN if a rail was not read.
    """

    board: str | None
    rails: tuple[str, ...]
    total_of: tuple[str, ...]
    resolution_w: tuple[float | None, ...]
    times_s: NDArray[np.float64]
    watts: NDArray[np.float64]

    @property
    def length_s(self) -> float:
        """How long it plays before it begins again: the last row holds for as long as a row does in the mean."""
        rows = len(self.times_s)
        return float(self.times_s[-1] - self.times_s[0]) * rows / (rows - 1) if rows > 1 else 1.0


class Writer:
    """Writes a trace, a row at a time, to a text file that the caller opened and closes."""

    def __init__(
        self,
        file: TextIO,
        board: str | None,
        rails: Sequence[str],
        total_of: Sequence[str],
        resolution_w: Sequence[float | None],
    ) -> None:
        """Write the header. resolution_w: of each rail, in their order."""
        header = _Header(board, list(rails), list(total_of), list(resolution_w))
        file.write(f"{_MARK}{__version__} {msgspec.json.encode(header).decode()}\n")
        file.write(_row([_TIME, *rails]) + "\n")
        self._file = file

    def row(self, t_s: float, watts: Sequence[float | None]) -> None:
        """Write what each rail read at t_s, which rises from row to row; None if it could not be read."""
        self._file.write(_row([f"{t_s:.6f}", *("" if each is None else f"{each:.6f}" for each in watts)]) + "\n")


def rows(rails: Sequence[Rail], seconds: float | None, rate_hz: float) -> Iterator[tuple[float, list[float | None]]]:
    """Yield the time since the first row and every rail's watts, on a schedule that does not drift.

    seconds: how long, None for ever. Rows that could not be read in time are left out, never made up.
    """
    began = time.monotonic()
    first_s: float | None = None
    row = 0
    while seconds is None or row < round(seconds * rate_hz):
        time.sleep(max(0.0, began + row / rate_hz - time.monotonic()))
        now_s = time.monotonic()
        first_s = now_s if first_s is None else first_s
        yield now_s - first_s, [_watts(rail) for rail in rails]
        row = max(row + 1, int((time.monotonic() - began) * rate_hz))


def read(path: Path) -> Trace:
    """Read a trace; raises RailError with the line that is wrong. A last row that was cut short is left out."""
    try:
        lines = files.read_bounded(path, MAX_BYTES).decode("utf-8").split("\n")
    except OSError as error:
        raise RailError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RailError(f"{path}: not UTF-8 text at byte {error.start}") from None
    header = _header(path, lines[0])
    if lines[1:2] != [_row([_TIME, *header.rails])]:
        raise RailError(f"{path}: line 2: the columns are not {_TIME} and the rails of the first line")
    rows: list[list[float]] = []
    for number, line in enumerate(lines[2:-1], start=3):  # what follows the last line end was cut short
        try:
            row = [float(cell) if cell else math.nan for cell in line.split(",")]  # numbers alone: nothing is quoted
        except ValueError as error:
            raise RailError(f"{path}: line {number}: {error}") from None
        if len(row) != 1 + len(header.rails):
            raise RailError(f"{path}: line {number}: {len(row)} cells for {1 + len(header.rails)} columns")
        if not (rows[-1][0] if rows else -math.inf) < row[0] < math.inf:
            raise RailError(f"{path}: line {number}: its time is not after the row before it")
        rows.append(row)
    if not rows:
        raise RailError(f"{path}: it has no rows; record again")
    table = np.array(rows)
    names = tuple(header.rails), tuple(header.total_of)
    return Trace(header.board, *names, tuple(header.resolution_w), table[:, 0], table[:, 1:])


def _watts(rail: Rail) -> float | None:
    """What the rail reads now, None if it cannot be read."""
    try:
        return rail.read_uw() / 1e6
    except RailError:
        return None


def _row(cells: list[str]) -> str:
    """One line of CSV, without its end."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _header(path: Path, line: str) -> _Header:
    _, mark, rest = line.partition(_MARK)
    try:
        header = msgspec.json.decode(rest.partition(" ")[2] if mark else "", type=_Header)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RailError(f"{path}: line 1 is not the header of a trace of jetsel power record: {error}") from None
    distinct = len(set(header.rails)) == len(header.rails) == len(header.resolution_w) > 0
    if not distinct or not set(header.total_of) <= set(header.rails):
        raise RailError(f"{path}: line 1: its rails, their total and their steps do not agree")
    return header


class TraceRail:
    """One rail of a trace. It holds each recorded value until the next, as a sensor's register does."""

    def __init__(self, trace: Trace, index: int, path: Path, row: Callable[[], int]) -> None:
        """Play one column of a trace. row: returns which row holds now, for all of its rails."""
        self.name = trace.rails[index]
        self.where = str(path)
        self.resolution_w = trace.resolution_w[index]
        self.read_uj = None  # it does not count
        self._watts = trace.watts[:, index]
        self._row = row

    def read_uw(self) -> int:
        """Return the power in microwatts that was recorded for now; raises RailError if none was read then."""
        watts = float(self._watts[self._row()])
        if not math.isfinite(watts):
            raise RailError(f"{self.where}: the sensor was not read then")
        return round(watts * 1e6)

    def measure(self) -> Measured:
        """Return the power; a trace has neither voltage nor current; raises RailError."""
        return Measured(self.read_uw() / 1e6, None, None)

    def close(self) -> None:
        """Nothing is open: the whole trace is in memory."""


def detect(path: Path) -> tuple[Detected, str | None]:
    """Return the rails of a trace and the name of the board it was recorded on; raises RailError, see `read`.

    It is played from now on, over and over.
    """
    trace = read(path)
    begin_ns = time.monotonic_ns()

    def row() -> int:
        played_s = (time.monotonic_ns() - begin_ns) / 1e9 % trace.length_s
        return int(np.searchsorted(trace.times_s, trace.times_s[0] + played_s, side="right")) - 1

    rails = tuple(TraceRail(trace, index, path, row) for index in range(len(trace.rails)))
    return Detected(rails, total=trace.total_of), trace.board
