"""A recorded trace of power, played in real time as rails: [power] replay."""

from __future__ import annotations

import math
import time
from array import array
from bisect import bisect_right
from pathlib import Path

from jetsel.power.sensors.rail import Measured, RailError
from jetsel.power.sensors.sensed import Sensed
from jetsel.power.trace import Trace, read


class _Clock:
    """Where the playing is: over and over, from the moment it was opened."""

    def __init__(self, trace: Trace) -> None:
        self._times_s = trace.times_s
        self._length_s = trace.length_s
        self._begin_ns = time.monotonic_ns()

    def row(self) -> int:
        """The row that holds now."""
        played_s = (time.monotonic_ns() - self._begin_ns) / 1e9
        return bisect_right(self._times_s, self._times_s[0] + played_s % self._length_s) - 1


class TraceRail:
    """One rail of a trace. It holds each recorded value until the next, as a sensor's register does."""

    def __init__(self, trace: Trace, index: int, path: Path, clock: _Clock) -> None:
        """Play one column of a trace by a clock that its rails share."""
        self.name = trace.rails[index]
        self.where = str(path)
        self.resolution_w = trace.resolution_w[index]
        self.read_uj = None  # it does not count
        self._watts: array[float] = trace.watts[index]
        self._clock = clock

    def read_uw(self) -> int:
        """Return the power in microwatts that was recorded for now; raises RailError where none was read then."""
        watts = self._watts[self._clock.row()]
        if math.isnan(watts):
            raise RailError(f"{self.where}: the sensor was not read then")
        return round(watts * 1e6)

    def measure(self) -> Measured:
        """Return the power; a trace has neither voltage nor current; raises RailError."""
        return Measured(self.read_uw() / 1e6, None, None)

    def close(self) -> None:
        """Nothing is open: the whole trace is in memory."""


def sense(path: Path) -> tuple[Sensed, str | None]:
    """Return the rails of a trace and the name of the board it was recorded on; raises RailError, see trace.read."""
    trace = read(path)
    clock = _Clock(trace)
    rails = tuple(TraceRail(trace, index, path, clock) for index in range(len(trace.rails)))
    return Sensed(rails, total=trace.total_of), trace.board
