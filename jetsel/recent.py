"""The last of what was measured, in memory of a fixed size, and its percentiles."""

from __future__ import annotations

from collections import deque
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

    Percentiles are exact, of whatever is kept.
    """

    def __init__(self, columns: int) -> None:
        """columns: values in a row."""
        self._columns = columns
        self._rows: deque[tuple[float, ...]] = deque(maxlen=MOST)

    def add(self, now_s: float, *values: float) -> None:
        """Note one row. now_s: on the monotonic clock. values: as many as there are columns; NaN: did not happen."""
        self._rows.append((now_s, *values))

    def kept(self) -> Kept:
        """Return a copy of what is kept, to look at without the lock."""
        return Kept(list(self._rows), self._columns)


class Kept(NamedTuple):
    """Rows of at_s and so many values."""

    rows: list[tuple[float, ...]]
    columns: int

    def since(self, now_s: float) -> tuple[NDArray[np.float32], float | None]:
        """Return the values that are not too old, (n, columns), and the age of the oldest in seconds."""
        rows = [row for row in self.rows if row[0] >= now_s - WINDOW_S]
        values = np.array([row[1:] for row in rows], np.float32).reshape(len(rows), self.columns)
        return values, now_s - rows[0][0] if rows else None


def percentiles(values: NDArray[np.float32]) -> Percentiles | None:
    """Return the nearest-rank percentiles of (n,) values, NaN left out; None where there are none.

    Nearest rank: the least value that at least this share of all is no larger than; definition 1 of Hyndman and Fan,
    "Sample Quantiles in Statistical Packages" (The American Statistician, 1996).
    """
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return None
    return Percentiles(*(float(known[-(-percent * len(known) // 100) - 1]) for percent in (50, 95, 99)))
