"""What the sampler says of itself: how well it keeps its schedule, and what it costs."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from mmap import mmap
from typing import Final

from jetsel.power.sampling.ring import MASK, STATISTICS, WORD
from jetsel.power.sensors.rail import Dropped

_FACTOR: Final = 0x9E3779B97F4A7C15
_TRIES = 100


@dataclass
class Statistics:
    """What the process writes about itself, about once a second; -1: not known yet. Counts are since it started."""

    reads: int = 0
    samples: int = 0  # of those, new values
    repeated: int = 0  # of those, values that the sensor merely repeated
    failed: int = 0  # of those, no reading
    missed: int = 0  # times at which the schedule wanted a reading and the process was late for it by a whole interval
    achieved_mhz: int = -1  # reads in 1,000 s at the rate of the last second or so with an open window
    late_p50_ns: int = -1  # of the last 1,024 reads while a window was open
    late_p99_ns: int = -1
    period_ns: int = -1
    bound_ns: int = -1  # what the period cannot be longer than, while it is not known; -1: each read is new, or it is
    interval_ns: int = -1  # between reads while a window is open
    read_ns: int = -1  # what reading the rails takes, mean of the last second or so
    busy_ppm: int = -1  # of one core, in the last second or so

    def write(self, memory: mmap) -> None:
        """Put them where the daemon finds them."""
        words = tuple(vars(self).values())
        _WORDS.pack_into(memory, STATISTICS * WORD, *words, _check(words))

    @classmethod
    def read(cls, memory: mmap) -> Statistics | None:
        """Return what the process last wrote, whole; None where it has written nothing."""
        for _ in range(_TRIES):
            *words, check = _WORDS.unpack_from(memory, STATISTICS * WORD)
            if not check:
                return None
            if check == _check(tuple(words)):
                return cls(*words)
        return None

    @staticmethod
    def clear(memory: mmap) -> None:
        """Take away what an earlier process wrote."""
        memory[STATISTICS * WORD : STATISTICS * WORD + _WORDS.size] = bytes(_WORDS.size)


_WORDS: Final = struct.Struct(f"@{len(fields(Statistics))}qQ")


def _check(words: tuple[int, ...]) -> int:
    """As in ring.py: what is older or newer than the rest changes it. Never 0, which is `nothing written`."""
    total = 0
    for word in words:
        total = (total + word) * _FACTOR & MASK
    return total | 1


@dataclass(frozen=True)
class Report:
    """The sampler at a glance. None: not known, which it is until a window has been open for a while.

    achieved_hz: reads in a second while a window was open. jitter_p50_us, jitter_p99_us: how late those reads began.
    update_period_ms: how often the sensor has a new value, None where each read finds one. read_us: what a read takes.
    busy: share of one core. samples, repeated, failed, missed: counts since the process started, see Statistics.
    dropped: rails that are not read, and why. restarts: how often the process had to be started again.
    """

    total_of: tuple[str, ...]
    reason: str | None
    achieved_hz: float | None
    jitter_p50_us: float | None
    jitter_p99_us: float | None
    update_period_ms: float | None
    read_us: float | None
    busy: float | None
    samples: int
    repeated: int
    failed: int
    missed: int
    dropped: tuple[Dropped, ...]
    restarts: int


def report(
    statistics: Statistics | None,
    total_of: tuple[str, ...],
    reason: str | None,
    dropped: tuple[Dropped, ...],
    restarts: int,
) -> Report:
    """Return the report of a process whose statistics are these."""
    known = statistics or Statistics()
    return Report(
        total_of=total_of,
        reason=reason,
        achieved_hz=_in(known.achieved_mhz, 1e3),
        jitter_p50_us=_in(known.late_p50_ns, 1e3),
        jitter_p99_us=_in(known.late_p99_ns, 1e3),
        update_period_ms=_in(known.period_ns, 1e6),
        read_us=_in(known.read_ns, 1e3),
        busy=_in(known.busy_ppm, 1e6),
        samples=known.samples,
        repeated=known.repeated,
        failed=known.failed,
        missed=known.missed,
        dropped=dropped,
        restarts=restarts,
    )


def _in(value: int, unit: float) -> float | None:
    return None if value < 0 else value / unit
