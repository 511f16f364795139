"""The clock of one model: how often it ran, a histogram of its times, and how long its next run takes."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import deque

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
        old_weight = min(weight * math.exp(-max(0.0, now_s - seen_s) / FORGET_S), LAST - 1.0)
        weight, off_ms = old_weight + 1.0, took_ms - mean_ms
        mean_ms += off_ms / weight
        self._seen = weight, mean_ms, (old_weight * variance + off_ms * (took_ms - mean_ms)) / weight, now_s

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


FRESH_S = 1.0  # for so long after a run its time is expected of the next one, whatever was calibrated
RECENT = 256  # runs from which the next one's time is expected: a few seconds under load
SORT_EVERY = 16  # of them, or a quarter: each request reads percentiles, and they change little by one run


class ModelTimes:
    """The runs of one model and their times. Any thread may call.

    A run, its time and its escalations are reported at once, so that there are never more escalations than runs.
    Forecasts take `prior_ms`, the calibrated mean and deviation of one run; None if there is none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = self._escalations = 0
        self.run = Estimate()  # of one run, whatever its batch
        self._images_ms: deque[float] = deque(maxlen=RECENT)  # of one image: a batch's, shared out
        self._sorted: list[float] = []  # of these, a few runs old
        self._unsorted = 0
        self._histogram = TimeHistogram()

    def ran(self, took_ms: float, images: int, now_s: float, *, counted: int = 1, escalations: int = 0) -> None:
        """Take in a run of a batch of images that ended now.

        counted: of them, those of requests. escalations: of these, those whose policy then ran another model.
        """
        with self._lock:
            self._runs += counted
            self._escalations += escalations
            self.run.add(took_ms, now_s)
            self._images_ms.append(took_ms / images)
            for _ in range(counted):
                self._histogram.add(took_ms)
            self._unsorted += 1
            if self._unsorted >= min(SORT_EVERY, len(self._images_ms) // 4):
                self._sorted, self._unsorted = sorted(self._images_ms), 0

    def counts(self) -> tuple[int, int]:
        """Return the images that it classified, and for how many of them another model then ran."""
        with self._lock:
            return self._runs, self._escalations

    def histogram(self) -> Histogram:
        """Return the times of its runs in bins; a run counts for each image of its batch."""
        with self._lock:
            return self._histogram.copy()

    def percentile_ms(self, share: float) -> float | None:
        """Return the time of one image that this share of the recent runs stayed below; None if none was measured."""
        times = self._sorted
        return times[min(int(share * len(times)), len(times) - 1)] if times else None

    def expected_ms(self, share: float, now_s: float, prior_ms: tuple[float, float] | None) -> float | None:
        """Return the percentile of the recent runs; if none ended in the last second, at most the calibrated mean.

        Without a calibration, the fastest recent time stands in for the mean, and counts less the longer ago it was. A
        model that was slow once would otherwise be refused for ever, and never be seen to be fast again.
        """
        recent_ms, age_s = self.percentile_ms(share), now_s - self.run.seen_s
        known_ms = None if prior_ms is None else prior_ms[0]
        if recent_ms is None or age_s < FRESH_S:
            return known_ms if recent_ms is None else recent_ms
        if known_ms is None:
            known_ms = (self.percentile_ms(0.0) or 0.0) * math.exp(-age_s / FORGET_S)
        return min(recent_ms, known_ms)
