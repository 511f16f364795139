"""One measured window: how long each request took, and what processor time it cost on either side."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterable

import msgspec
import numpy as np


class Window(msgspec.Struct, frozen=True):
    """Requests answered back to back, warm-up excluded.

    server_cpu_s: user and system time of all threads of all processes that answer, between the window's first request
    and its last answer. generator_cpu_s: the same of the process that asks; 0 where nobody asks (the bare loop).
    """

    latencies_ms: list[float]
    wall_s: float
    server_cpu_s: float
    generator_cpu_s: float

    @property
    def p50_ms(self) -> float:
        """The median latency."""
        return float(np.percentile(self.latencies_ms, 50))

    @property
    def p99_ms(self) -> float:
        """The latency that one request in a hundred exceeds."""
        return float(np.percentile(self.latencies_ms, 99))

    @property
    def requests_per_s(self) -> float:
        """Answers by wall time."""
        return len(self.latencies_ms) / self.wall_s

    @property
    def server_cpu_ms(self) -> float:
        """Processor time of one request on the answering side."""
        return self.server_cpu_s * 1e3 / len(self.latencies_ms)

    @property
    def generator_cpu_ms(self) -> float:
        """Processor time of one request on the asking side."""
        return self.generator_cpu_s * 1e3 / len(self.latencies_ms)


class CpuClock:
    """The processor time that running processes have used, in seconds: what getrusage would tell each of them.

    POSIX has a clock for each process (clock_getcpuclockid); it counts the same user and system time of all threads,
    those that ended included, in nanoseconds. /proc/<pid>/stat has it in hundredths of a second, and
    /proc/<pid>/schedstat only for the first thread.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._clocks = [_clock_of(pid) for pid in pids]

    def read_s(self) -> float:
        """Return the sum over the processes."""
        return sum(time.clock_gettime(clock) for clock in self._clocks)


def _clock_of(pid: int) -> int:
    clock = ctypes.c_int()
    number = ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))
    if number:
        raise OSError(number, os.strerror(number), f"process {pid}")
    return clock.value
