"""The last of what was measured, in memory of a fixed size, and running estimates of it."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
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


@dataclass
class Estimate:
    """Of one thing that takes time. Any thread may call.

    prior_ms: mean and standard deviation before anything was seen, to which the estimate goes back if nothing is
    seen any more; None if nothing is known. seen_s: when the last was, of time.monotonic().
    """

    prior_ms: tuple[float, float] | None = None
    _weight: float = 0.0
    _mean_ms: float = 0.0
    _variance: float = 0.0
    seen_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, took_ms: float, now_s: float) -> None:
        """Take in a time; now_s: of time.monotonic()."""
        with self._lock:
            kept = min(self._faded(now_s), LAST - 1.0)
            self._weight, self.seen_s = kept + 1.0, now_s
            off_ms = took_ms - self._mean_ms
            self._mean_ms += off_ms / self._weight
            self._variance = (kept * self._variance + off_ms * (took_ms - self._mean_ms)) / self._weight

    def at(self, now_s: float) -> tuple[float, float] | None:
        """Return mean and standard deviation in ms, None if nothing is known."""
        with self._lock:
            weight, mean_ms, variance = self._faded(now_s), self._mean_ms, self._variance
        if self.prior_ms is None:
            return (mean_ms, math.sqrt(variance)) if weight else None
        before_ms, deviation_ms = self.prior_ms
        share = weight / (weight + PRIOR_WEIGHT)
        both_ms = share * mean_ms + (1 - share) * before_ms
        spread = share * variance + (1 - share) * deviation_ms**2
        return both_ms, math.sqrt(spread)

    def _faded(self, now_s: float) -> float:
        return self._weight * math.exp(-max(0.0, now_s - self.seen_s) / FORGET_S)
