"""Where the simulated power comes from: each source is the exact integral of its own power over time."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from jetsel.power import trace

GRID_NS = 100_000  # a function of time is integrated by the midpoint rule, in steps of 0.1 ms


class Source(Protocol):
    """A power that can be integrated."""

    def energy_j(self, at_ns: int) -> float:
        """Return joules from the beginning to `at_ns` (ns since the beginning, negative before it)."""


class Constant:
    """Always the same."""

    def __init__(self, watts: float) -> None:
        self._watts = watts

    def energy_j(self, at_ns: int) -> float:
        return self._watts * at_ns * 1e-9


class Square:
    """High for the first part of each period, then low; a period begins at the beginning."""

    def __init__(self, period_s: float, duty: float, low_w: float, high_w: float) -> None:
        self._period_s = period_s
        self._high_s = duty * period_s
        self._low_w = low_w
        self._high_w = high_w
        self._whole_j = high_w * self._high_s + low_w * (period_s - self._high_s)

    def energy_j(self, at_ns: int) -> float:
        periods, into_s = divmod(at_ns * 1e-9, self._period_s)
        high_s = min(into_s, self._high_s)
        return periods * self._whole_j + high_s * self._high_w + (into_s - high_s) * self._low_w


class Recorded:
    """The total of a trace (`jetsel power record`), over and over; a row holds until the next, as a register does."""

    def __init__(self, path: Path) -> None:
        recorded = trace.read(path)
        columns = [recorded.watts[recorded.rails.index(name)] for name in recorded.total_of]
        if not columns:
            raise ValueError(f"{path}: no rails make its total (total_of in its first line)")
        watts: list[float] = [math.fsum(row) for row in zip(*columns, strict=True)]
        if any(math.isnan(each) for each in watts):
            raise ValueError(f"{path}: it has gaps, and power does not: leave them out")
        self._times_s: list[float] = [each - recorded.times_s[0] for each in recorded.times_s]
        self._watts = watts
        self._length_s = recorded.length_s
        lengths_s = (b - a for a, b in itertools.pairwise([*self._times_s, self._length_s]))
        self._until_j: list[float] = list(itertools.accumulate(map(operator.mul, watts, lengths_s), initial=0.0))

    def energy_j(self, at_ns: int) -> float:
        rounds, into_s = divmod(at_ns * 1e-9, self._length_s)
        row = bisect.bisect_right(self._times_s, into_s) - 1
        before_j = rounds * self._until_j[-1] + self._until_j[row]
        return before_j + (into_s - self._times_s[row]) * self._watts[row]


class Function:
    """A function of the seconds since the beginning, in watts; what it was before that is what it is then."""

    def __init__(self, watts: Callable[[float], float]) -> None:
        self._watts = watts
        self._until_j = array("d", [0.0])  # at each point of the grid

    def energy_j(self, at_ns: int) -> float:
        if at_ns < 0:
            return self._watts(0.0) * at_ns * 1e-9
        point, beyond_ns = divmod(at_ns, GRID_NS)
        while len(self._until_j) < point + 2:
            middle_s = (len(self._until_j) - 0.5) * GRID_NS * 1e-9
            self._until_j.append(self._until_j[-1] + self._watts(middle_s) * GRID_NS * 1e-9)
        before_j, after_j = self._until_j[point], self._until_j[point + 1]
        return before_j + (after_j - before_j) * beyond_ns / GRID_NS


class Level:
    """What was last written into the level file."""

    def __init__(self, watts: float) -> None:
        self._steps = [(0, 0.0, watts)]  # since when, joules until then, watts from then on

    def set(self, watts: float, at_ns: int) -> None:
        self._steps.append((at_ns, self.energy_j(at_ns), watts))

    def energy_j(self, at_ns: int) -> float:
        found = bisect.bisect_right(self._steps, at_ns, key=lambda step: step[0]) - 1
        since_ns, joules, watts = self._steps[max(0, found)]
        return joules + watts * (at_ns - since_ns) * 1e-9
