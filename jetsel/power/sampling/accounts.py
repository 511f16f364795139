"""The sampler's accounts of itself: how late it was, how many readings it got, and what that cost."""

from __future__ import annotations

import time
from array import array
from typing import Final

from jetsel.power.sampling.report import Statistics

SPAN_NS = 1_000_000_000  # that the figures are of
LEAST_NS = 500_000_000  # with a window open, before a rate is told
KEPT: Final = 1024  # latenesses; a power of two


class Accounts:
    """Counts since the start, and figures of the last span. Rate and lateness are of open windows alone."""

    def __init__(self, now_ns: int) -> None:
        self.statistics = Statistics()
        self.over_ns = now_ns + SPAN_NS
        self._late_ns = array("q", bytes(8 * KEPT))
        self._late = 0
        self._fast_reads = 0
        self._fast_ns = 0
        self._fast_since_ns: int | None = None
        self._begin(now_ns)

    def read(self, late_ns: int, took_ns: int) -> None:
        """Count a read: how late it began, and how long it took."""
        self._reads += 1
        self._reading_ns += took_ns
        if self._fast_since_ns is not None:
            self._late_ns[self._late & (KEPT - 1)] = late_ns
            self._late += 1
            self._fast_reads += 1

    def turn(self, is_fast: bool, now_ns: int) -> None:
        """Take note that a window is open from now on, or none."""
        if self._fast_since_ns is not None:
            self._fast_ns += now_ns - self._fast_since_ns
        self._fast_since_ns = now_ns if is_fast else None

    def settle(self, now_ns: int) -> Statistics:
        """Close the span; return what is known now."""
        self.turn(self._fast_since_ns is not None, now_ns)
        known = self.statistics
        known.reads += self._reads
        if self._reads:
            known.read_ns = self._reading_ns // self._reads
        known.busy_ppm = round(1e6 * (time.process_time_ns() - self._cpu_ns) / max(now_ns - self._began_ns, 1))
        if self._fast_ns >= LEAST_NS:
            known.achieved_mhz = round(1e12 * self._fast_reads / self._fast_ns)
            late_ns = sorted(self._late_ns[: self._late])
            known.late_p50_ns, known.late_p99_ns = (late_ns[int(share * (len(late_ns) - 1))] for share in (0.5, 0.99))
            self._fast_reads = self._fast_ns = 0
        self._begin(now_ns)
        return known

    def _begin(self, now_ns: int) -> None:
        self.over_ns = now_ns + SPAN_NS
        self._began_ns = now_ns
        self._cpu_ns = time.process_time_ns()
        self._reads = self._reading_ns = 0
