"""The memory that samples pass through: its layout, and the one writer that it has.

A file without a name that both processes map, so that nothing of it outlives them. The reader is `reader.py`.

The writer is never stopped and takes no lock, and a processor such as a Jetson's may show its stores to another core in
any order: neither "the head has moved" nor "the index fits" proves that the rest of a record has arrived. So each
record carries its index and a check over all of its words, and the reader takes only copies in which both fit. The
check is the sum of the words, each times an odd constant of its own, modulo 2**64: one word that is older or newer than
the others, in whole or in part, always changes it, and several together leave it as it was once in 2**64.

Every record also carries the energy since the ring began. So a copy of one record in a while, kept in a second ring,
still gives the exact mean of the time between two of them, long after the records between them are overwritten.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from mmap import mmap
from typing import Final

MASK: Final = (1 << 64) - 1
FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
"""Odd, without a pattern; else of no meaning."""

WORD = 8  # bytes
RECORD: Final = struct.Struct("@qqqqqQ")  # native, so that each word is one store
INDEX, TIME, POWER, ENERGY, UNREAD, CHECK = range(6)
"""The words of a record: its number; ns of CLOCK_MONOTONIC; uW; nJ since the ring began; ns of that without energy."""

NO_READING: Final = -(1 << 63)
"""In place of a power: the sensor could not be read then. What lies on both sides of it is not known."""

HEADER_BYTES = 4096
WANTED = 0  # word of the header, written by the daemon: how many windows are open
HEADS = 1  # and the words after it, one a level: how many records were ever written
TOLD = 8  # word of the header, written by the daemon: the period in ns that was measured before, 0 where none was
STATISTICS = 16  # words of the header from here on, see report.py


@dataclass(frozen=True)
class Level:
    """One ring. It takes a record whenever `stride_ns` have gone by since its last; 0: every record."""

    offset: int  # bytes from the start of the memory
    capacity: int  # records, a power of two
    stride_ns: int


ALL = Level(HEADER_BYTES, 1 << 16, 0)  # 65 s at 1,000/s
SECONDS = Level(ALL.offset + ALL.capacity * RECORD.size, 1 << 15, 1_000_000_000)  # 9 hours
LEVELS: Final = (ALL, SECONDS)
SIZE: Final = SECONDS.offset + SECONDS.capacity * RECORD.size


def check(index: int, time_ns: int, power_uw: int, energy_nj: int, unread_ns: int) -> int:
    """Return the check of a record's other words."""
    one, two, three, four, five = FACTORS
    return (index * one + time_ns * two + power_uw * three + energy_nj * four + unread_ns * five) & MASK


class Writer:
    """The one writer. A later one goes on where an earlier one ended, after a gap."""

    def __init__(self, memory: mmap, now_ns: int) -> None:
        """Take the ring over at a time of CLOCK_MONOTONIC; no other writer may live."""
        self._memory = memory
        self._words = memoryview(memory).cast("B").cast("q")
        self._count = self._words[HEADS]
        self._seconds = self._words[HEADS + 1]
        self._time_ns = self._unread_ns = self._energy_nj = 0
        self._kept_ns = -SECONDS.stride_ns
        self._power_uw = NO_READING
        self._half_fj = 0  # twice what is not in `_energy_nj` yet, in fJ = uW ns
        if self._count:
            _, self._time_ns, _, self._energy_nj, self._unread_ns, _ = self._record(ALL, self._count)
            self._kept_ns = self._record(SECONDS, self._seconds)[TIME]
            self.append(now_ns, NO_READING)

    @property
    def count(self) -> int:
        """How many records were ever written, by all writers."""
        return self._count

    def append(self, time_ns: int, power_uw: int) -> bool:
        """Write a record; False where its time is not after the last one's, and then it is left out."""
        passed_ns = time_ns - self._time_ns
        if passed_ns <= 0:
            return False
        before_uw = self._power_uw
        if before_uw == NO_READING or power_uw == NO_READING:
            if self._count:
                self._unread_ns += passed_ns
        else:  # the trapezoid
            whole_nj, self._half_fj = divmod(self._half_fj + (before_uw + power_uw) * passed_ns, 2_000_000)
            self._energy_nj += whole_nj
        self._time_ns = time_ns
        self._power_uw = power_uw
        self._put(ALL.offset + (self._count & (ALL.capacity - 1)) * RECORD.size, self._count)
        self._count += 1
        self._words[HEADS] = self._count
        if time_ns - self._kept_ns >= SECONDS.stride_ns:
            self._kept_ns = time_ns
            self._put(SECONDS.offset + (self._seconds & (SECONDS.capacity - 1)) * RECORD.size, self._seconds)
            self._seconds += 1
            self._words[HEADS + 1] = self._seconds
        return True

    def _put(self, offset: int, index: int) -> None:
        time_ns, power_uw, energy_nj, unread_ns = self._time_ns, self._power_uw, self._energy_nj, self._unread_ns
        sum_ = check(index, time_ns, power_uw, energy_nj, unread_ns)
        RECORD.pack_into(self._memory, offset, index, time_ns, power_uw, energy_nj, unread_ns, sum_)

    def _record(self, level: Level, count: int) -> tuple[int, ...]:
        return RECORD.unpack_from(self._memory, level.offset + ((count - 1) & (level.capacity - 1)) * RECORD.size)
