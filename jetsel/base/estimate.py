"""A running estimate of how long something takes: mean and standard deviation, of late and from before."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

LAST = 10  # times that decide, where they come often
FORGET_S = 20.0  # what was seen so long ago has a third of its weight: one that was slow is tried again
PRIOR_WEIGHT = 0.2  # of a time


@dataclass
class Estimate:
    """Of one thing that takes time. Any thread may call.

    prior_ms: mean and standard deviation before anything was seen, to which the estimate goes back where nothing is
    seen any more; None where nothing is known. seen_s: when the last was, of time.monotonic().
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
        """Return mean and standard deviation in ms, None where nothing is known."""
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
