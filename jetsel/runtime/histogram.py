"""Times that are counted in bins, from which `status` and Prometheus derive percentiles."""

from __future__ import annotations

from bisect import bisect_left

from jetsel.wire.counts import Histogram

_STEPS = (1.0, 1.5, 2.5, 3.5, 5.0, 7.5)  # in each power of ten: percentiles are interpolated between two of them
BOUNDS_MS = (0.1, 0.25, 0.5, 0.75, *(step * power for power in (1, 10, 100, 1000) for step in _STEPS))


class TimeHistogram:
    """Counts by BOUNDS_MS; NaN, which did not happen, is left out."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_MS) + 1)
        self._sum_ms = 0.0

    def add(self, ms: float) -> None:
        """Count a time."""
        if ms == ms:
            self._counts[bisect_left(BOUNDS_MS, ms)] += 1
            self._sum_ms += ms

    def copy(self) -> Histogram:
        """Return the counts so far."""
        return Histogram(list(self._counts), self._sum_ms)
