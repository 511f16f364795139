"""A recorded trace of power, played in real time as rails: [power] replay."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from jetsel.power.sensors.rail import Detected, Measured, RailError
from jetsel.power.trace import Trace, read


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
        """Return the power in microwatts that was recorded for now; raises RailError where none was read then."""
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
    """Return the rails of a trace and the name of the board it was recorded on; raises RailError, see trace.read.

    It is played from now on, over and over.
    """
    trace = read(path)
    begin_ns = time.monotonic_ns()

    def row() -> int:
        played_s = (time.monotonic_ns() - begin_ns) / 1e9 % trace.length_s
        return int(np.searchsorted(trace.times_s, trace.times_s[0] + played_s, side="right")) - 1

    rails = tuple(TraceRail(trace, index, path, row) for index in range(len(trace.rails)))
    return Detected(rails, total=trace.total_of), trace.board
