"""The last of what was measured, in memory of a fixed size, and its percentiles."""

from __future__ import annotations

import struct
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

    Percentiles are exact, of whatever is kept. A row is packed into memory that was taken at the start, so that noting
    one allocates nothing, and `kept` holds up who notes for no longer than a copy takes.
    """

    def __init__(self, columns: int) -> None:
        """columns: values in a row, float32."""
        row = struct.Struct(f"=d{columns}f")
        self._pack, self._row_bytes = row.pack_into, row.size
        self._type = np.dtype([("at_s", np.float64), ("values", np.float32, (columns,))])
        self._memory = bytearray(row.size * MOST)
        self._count = 0

    def add(self, now_s: float, *values: float) -> None:
        """Note one row. now_s: on the monotonic clock. values: as many as there are columns; NaN: did not happen."""
        self._pack(self._memory, self._count % MOST * self._row_bytes, now_s, *values)
        self._count += 1

    def kept(self) -> Kept:
        """Return a copy of what is kept, to look at without the lock."""
        return Kept(np.frombuffer(bytes(self._memory), self._type, min(self._count, MOST)))


class Kept(NamedTuple):
    """A copy of kept rows, their columns at_s and values."""

    rows: NDArray[np.void]

    def since(self, now_s: float) -> tuple[NDArray[np.float32], float | None]:
        """Return the values that are not too old, (n, columns) in any order, and the age of the oldest in seconds."""
        rows = self.rows[self.rows["at_s"] >= now_s - WINDOW_S]
        return rows["values"], float(now_s - rows["at_s"].min()) if len(rows) else None


def percentiles(values: NDArray[np.float32]) -> Percentiles | None:
    """Return the nearest-rank percentiles of (n,) values, NaN left out; None where there are none.

    Nearest rank: the least value that at least this share of all is no larger than; definition 1 of Hyndman and Fan,
    "Sample Quantiles in Statistical Packages" (The American Statistician, 1996).
    """
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return None
    return Percentiles(*(float(known[-(-percent * len(known) // 100) - 1]) for percent in (50, 95, 99)))
