"""The last of what was measured, in memory of a fixed size, and running estimates of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST = 4096  # rows kept: the slowest 1 % are 40 of them
WINDOW_S = 300.0  # how old a row may be


class Percentiles(NamedTuple):
    """The values that 50, 95 and 99 % of what was measured stayed at or below."""

    p50: float
    p95: float
    p99: float


class Recent:
    """The last 4,096 rows of measured values that are no older than five minutes; its owner's lock is held by callers.

    Percentiles are exact, of whatever is kept. Its memory is taken at the start.
    """

    def __init__(self, columns: int) -> None:
        """columns: values in a row."""
        self._rows = np.zeros((MOST, 1 + columns))
        self._count = 0

    def add(self, now_s: float, *values: float) -> None:
        """Note one row. now_s: on the monotonic clock. values: as many as there are columns; NaN: did not happen."""
        self._rows[self._count % MOST] = (now_s, *values)
        self._count += 1

    def kept(self) -> Kept:
        """Return a copy of what is kept, to look at without the lock."""
        return Kept(self._rows[: min(self._count, MOST)].copy())


class Kept(NamedTuple):
    """A copy of kept rows: at_s, and the values."""

    rows: NDArray[np.float64]

    def since(self, now_s: float) -> tuple[NDArray[np.float64], float | None]:
        """Return the values that are not too old, (n, columns) in any order, and the age of the oldest in seconds."""
        rows = self.rows[self.rows[:, 0] >= now_s - WINDOW_S]
        return rows[:, 1:], float(now_s - rows[:, 0].min()) if len(rows) else None


def percentiles(values: NDArray[np.float64]) -> Percentiles | None:
    """Return the nearest-rank percentiles of (n,) values, NaN left out; None if there are none.

    Nearest rank: the least value that at least this share of all is no larger than; definition 1 of Hyndman and Fan,
    "Sample Quantiles in Statistical Packages" (The American Statistician, 1996).
    """
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return None
    return Percentiles(*(float(known[-(-percent * len(known) // 100) - 1]) for percent in (50, 95, 99)))


LAST = 10  # times that decide, if they come often
FORGET_S = 20.0  # what was seen so long ago has a third of its weight: one that was slow is tried again
PRIOR_WEIGHT = 0.2  # of a time


class Estimate:
    """Mean and standard deviation of one thing that takes time. One thread at a time adds; any may read."""

    def __init__(self) -> None:
        self._seen = 0.0, 0.0, 0.0, 0.0  # weight, mean and variance in ms, and when the last was: replaced whole

    @property
    def seen_s(self) -> float:
        """When the last time was added, of time.monotonic(); 0 if none was."""
        return self._seen[3]

    def add(self, took_ms: float, now_s: float) -> None:
        """Take in a time; now_s: of time.monotonic()."""
        weight, mean_ms, variance, seen_s = self._seen
        kept = min(weight * math.exp(-max(0.0, now_s - seen_s) / FORGET_S), LAST - 1.0)
        weight, off_ms = kept + 1.0, took_ms - mean_ms
        mean_ms += off_ms / weight
        self._seen = weight, mean_ms, (kept * variance + off_ms * (took_ms - mean_ms)) / weight, now_s

    def at(self, now_s: float, prior_ms: tuple[float, float] | None = None) -> tuple[float, float] | None:
        """Return mean and standard deviation in ms, None if nothing is known.

        prior_ms: both before anything was seen, to which they go back if nothing is seen any more.
        """
        weight, mean_ms, variance, seen_s = self._seen
        weight *= math.exp(-max(0.0, now_s - seen_s) / FORGET_S)
        if prior_ms is None:
            return (mean_ms, math.sqrt(variance)) if weight else None
        share = weight / (weight + PRIOR_WEIGHT)
        spread = share * variance + (1 - share) * prior_ms[1] ** 2
        return share * mean_ms + (1 - share) * prior_ms[0], math.sqrt(spread)
