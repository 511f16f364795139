"""The mean and the deviation of what takes time, as they are now."""

from __future__ import annotations

import math

LAST = 10  # times that decide, if they come often
FORGET_S = 20.0  # what was seen so long ago has a third of its weight: one that was slow is tried again
PRIOR_WEIGHT = 0.2  # of a time


class Estimate:
    """Mean and standard deviation of one thing that takes time. One thread at a time adds; any may read."""

    def __init__(self) -> None:
        self._seen = 0.0, 0.0, 0.0, 0.0  # weight, mean and variance in ms, and when the last was: replaced whole

    @property
    def seen_s(self) -> float:
        """When the last time was added, of time.monotonic(); 0 if none was."""
        return self._seen[3]

    def add(self, took_ms: float, now_s: float) -> None:
        """Take in a time; now_s: of time.monotonic()."""
        weight, mean_ms, variance, seen_s = self._seen
        kept = min(weight * math.exp(-max(0.0, now_s - seen_s) / FORGET_S), LAST - 1.0)
        weight, off_ms = kept + 1.0, took_ms - mean_ms
        mean_ms += off_ms / weight
        self._seen = weight, mean_ms, (kept * variance + off_ms * (took_ms - mean_ms)) / weight, now_s

    def at(self, now_s: float, prior_ms: tuple[float, float] | None = None) -> tuple[float, float] | None:
        """Return mean and standard deviation in ms, None if nothing is known.

        prior_ms: both before anything was seen, to which they go back if nothing is seen any more.
        """
        weight, mean_ms, variance, seen_s = self._seen
        weight *= math.exp(-max(0.0, now_s - seen_s) / FORGET_S)
        if prior_ms is None:
            return (mean_ms, math.sqrt(variance)) if weight else None
        share = weight / (weight + PRIOR_WEIGHT)
        spread = share * variance + (1 - share) * prior_ms[1] ** 2
        return share * mean_ms + (1 - share) * prior_ms[0], math.sqrt(spread)
