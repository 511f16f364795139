"""The daemon's side of the ring: copies of records, each proven whole."""

from __future__ import annotations

import time
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

from jetsel.power.sampling.ring import (
    ALL,
    CHECK,
    ENERGY,
    FACTORS,
    HEADS,
    INDEX,
    LEVELS,
    NO_READING,
    POWER,
    RECORD,
    SECONDS,
    TIME,
    UNREAD,
    WORD,
    Level,
)

_FACTORS = np.array(FACTORS, np.uint64)
_WIDTH = RECORD.size // WORD
_FIRST_COPY = 256  # records: more than most windows hold
_TRIES = 100
_PAUSE_S = 1e-4

Records = NDArray[np.int64]
"""(n, 6): the words of n records, as ring.py names them, in the order of time."""


class Reader:
    """Reads while the writer writes. Any thread may call."""

    def __init__(self, memory: mmap) -> None:
        words = np.frombuffer(memory, np.int64)
        self._heads = words[HEADS:]
        self._records = {
            level: words[level.offset // WORD :][: level.capacity * _WIDTH].reshape(level.capacity, _WIDTH)
            for level in LEVELS
        }

    def count(self) -> int:
        """Return how many records were ever written."""
        return int(self._heads[0])

    def newest(self) -> Records:
        """Return the newest record, (1, 6), or (0, 6) where there is none."""
        return self._last(ALL, 1)

    def between(self, begin_ns: int, end_ns: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return times (n,) int64 in ns and powers (n,) float64 in W, NaN for no reading.

        They are the records from `begin_ns` to `end_ns`, and one neighbour on each side where there is one. Of what the
        ring has overwritten, the mean of each second is left: it is given as two points, at its ends, so that a
        trapezoid over them has the energy that there was; NaN where a part of that second was not read.
        """
        records = self._since(ALL, begin_ns)
        times_ns, power_w = _points(records)
        if len(records) and times_ns[0] > begin_ns and records[0, INDEX] > 0:
            older = self._since(SECONDS, begin_ns)
            older_ns, older_w = _steps(np.concatenate([older[older[:, TIME] < times_ns[0]], records[:1]]))
            times_ns, power_w = np.concatenate([older_ns, times_ns]), np.concatenate([older_w, power_w])
        first = max(int(np.searchsorted(times_ns, begin_ns, "right")) - 1, 0)
        last = int(np.searchsorted(times_ns, end_ns, "left")) + 1
        return times_ns[first:last], power_w[first:last]

    def _since(self, level: Level, begin_ns: int) -> Records:
        """Return the records from the last one before `begin_ns` on, or as many as are kept."""
        wanted = _FIRST_COPY
        while True:
            records = self._last(level, wanted)
            if len(records) == 0 or records[0, TIME] <= begin_ns or wanted >= level.capacity:
                return records
            wanted *= 4

    def _last(self, level: Level, wanted: int) -> Records:
        """Return the newest records, those of which whole copies could be had."""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_S)
            head = int(self._heads[LEVELS.index(level)])
            first = max(head - min(wanted, level.capacity), 0)
            indices = np.arange(first, head)
            copies: Records = self._records[level][indices & (level.capacity - 1)]  # indexed by an array: always a copy
            whole = _is_whole(copies, indices)
            overwritten = int(np.argmax(whole)) if len(whole) else 0  # meanwhile, at the old end
            if whole[overwritten:].all():
                return copies[overwritten:]
        return np.empty((0, _WIDTH), np.int64)


def _is_whole(copies: Records, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
    words = copies.view(np.uint64)
    checks: NDArray[np.uint64] = (words[:, :CHECK] * _FACTORS).sum(axis=1, dtype=np.uint64)
    whole: NDArray[np.bool_] = (copies[:, INDEX] == indices) & (checks == words[:, CHECK])
    return whole


def _points(records: Records) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    power_uw = records[:, POWER]
    return records[:, TIME].copy(), np.where(power_uw == NO_READING, np.nan, power_uw / 1e6)


def _steps(records: Records) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The means between neighbouring records, each given 1 ns after the first of them and 1 ns before the second."""
    passed_ns = np.diff(records[:, TIME])
    mean_w = np.diff(records[:, ENERGY]) / passed_ns  # nJ / ns = W
    mean_w[np.diff(records[:, UNREAD]) > 0] = np.nan
    times_ns = np.stack([records[:-1, TIME] + 1, records[1:, TIME] - 1], axis=1).ravel()
    return times_ns, np.repeat(mean_w, 2)
