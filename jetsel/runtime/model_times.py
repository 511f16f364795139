"""Times of one model's runs: their number, a histogram, and the expected time of the next run."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import deque

from jetsel.wire.counts import Histogram

_STEPS = (1.0, 1.5, 2.5, 3.5, 5.0, 7.5)  # in each power of ten; percentiles are interpolated between neighbours
BOUNDS_MS = (0.1, 0.25, 0.5, 0.75, *(step * power for power in (1, 10, 100, 1000) for step in _STEPS))


class TimeHistogram:
    """Counts times in buckets with the upper bounds BOUNDS_MS. NaN: a stage did not occur, which is not counted."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_MS) + 1)
        self._sum_ms = 0.0

    def add(self, ms: float) -> None:
        """Count a time in ms, unless it is NaN."""
        if ms == ms:  # False for NaN only
            self._counts[bisect_left(BOUNDS_MS, ms)] += 1
            self._sum_ms += ms

    def copy(self) -> Histogram:
        """Return the counts and the sum of the times so far."""
        return Histogram(list(self._counts), self._sum_ms)


MOST_WEIGHT = 10  # largest weight of all times together, one each: about as many recent times decide
FORGET_S = 20.0  # time constant: an older time has a third of its weight, so that a slow model is tried again
PRIOR_WEIGHT = 0.2  # of the prior, where a measured time has a weight of 1


class Estimate:
    """Mean and standard deviation of recent times, weighted by age. One thread at a time adds; any thread may read."""

    def __init__(self) -> None:
        self._state = 0.0, 0.0, 0.0, 0.0  # weight, mean (ms), variance (ms^2), last_added_s; replaced whole for readers

    @property
    def last_added_s(self) -> float:
        """When the last time was added, by time.monotonic(); 0 if none was."""
        return self._state[3]

    def add(self, took_ms: float, now_s: float) -> None:
        """Add a time that was measured at now_s of time.monotonic().

        Each older time loses weight with its age. Mean and variance are updated as by West (1979), without the times.
        """
        weight, mean_ms, variance, last_s = self._state
        old_weight = min(weight * math.exp(-max(0.0, now_s - last_s) / FORGET_S), MOST_WEIGHT - 1.0)
        weight, off_ms = old_weight + 1.0, took_ms - mean_ms
        mean_ms += off_ms / weight
        self._state = weight, mean_ms, (old_weight * variance + off_ms * (took_ms - mean_ms)) / weight, now_s

    def mean_and_sd_ms(self, now_s: float, prior_ms: tuple[float, float] | None = None) -> tuple[float, float] | None:
        """Return mean and standard deviation in ms; None if no time was added and there is no prior.

        prior_ms: mean and deviation before the first time. As old times lose weight, the estimate returns to the prior.
        """
        weight, mean_ms, variance, last_s = self._state
        weight *= math.exp(-max(0.0, now_s - last_s) / FORGET_S)
        if prior_ms is None:
            return (mean_ms, math.sqrt(variance)) if weight else None
        measured_share = weight / (weight + PRIOR_WEIGHT)
        spread = measured_share * variance + (1 - measured_share) * prior_ms[1] ** 2
        return measured_share * mean_ms + (1 - measured_share) * prior_ms[0], math.sqrt(spread)


FRESH_S = 1.0  # a run that ended within this time counts more than the calibrated time
RECENT = 256  # runs that the forecast reads: a few seconds under load
SORT_EVERY = 16  # runs, or a quarter of them: each request reads percentiles, and one run changes them little


class ModelTimes:
    """The number of one model's runs and their recent times. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = self._escalations = 0  # counted together under the lock: never more escalations than runs
        self.run_time = Estimate()  # of a run, whatever its batch size
        self._images_ms: deque[float] = deque(maxlen=RECENT)  # of one image: a batch's time divided by its size
        self._sorted: list[float] = []  # a copy of _images_ms in order, for percentiles; a few runs old
        self._unsorted = 0  # runs since it was sorted
        self._histogram = TimeHistogram()

    def add_batch(self, took_ms: float, images: int, now_s: float, *, counted: int = 1, escalations: int = 0) -> None:
        """Add a run that has just ended and took took_ms for a batch of this many images.

        counted: how many of them are clients'. escalations: after how many of these the policy ran another model.
        """
        with self._lock:
            self._runs += counted
            self._escalations += escalations
            self.run_time.add(took_ms, now_s)
            self._images_ms.append(took_ms / images)
            for _ in range(counted):
                self._histogram.add(took_ms)
            self._unsorted += 1
            if self._unsorted >= min(SORT_EVERY, len(self._images_ms) // 4):
                self._sorted, self._unsorted = sorted(self._images_ms), 0

    def counts(self) -> tuple[int, int]:
        """Return how many of clients' images the model ran for, and after how many of them another model ran."""
        with self._lock:
            return self._runs, self._escalations

    def histogram(self) -> Histogram:
        """Return the histogram of the runs' times; a run counts once for each of the clients' images in its batch."""
        with self._lock:
            return self._histogram.copy()

    def percentile_ms(self, percentile: float) -> float | None:
        """Return a percentile (0 to 1) of the recent times of one image, in ms; None if none was measured."""
        times = self._sorted
        return times[min(int(percentile * len(times)), len(times) - 1)] if times else None

    def expected_ms(self, percentile: float, now_s: float, prior_ms: tuple[float, float] | None) -> float | None:
        """Return the expected time of one image: this percentile (0 to 1) of recent runs; None if nothing is known.

        If no run ended in the last second, it is at most the calibrated mean, prior_ms[0], or without that the fastest
        recent time, which fades with its age. Otherwise a model that was slow once would be refused ever after.
        """
        recent_ms, age_s = self.percentile_ms(percentile), now_s - self.run_time.last_added_s
        limit_ms = None if prior_ms is None else prior_ms[0]
        if recent_ms is None or age_s < FRESH_S:
            return limit_ms if recent_ms is None else recent_ms
        if limit_ms is None:
            limit_ms = (self.percentile_ms(0.0) or 0.0) * math.exp(-age_s / FORGET_S)
        return min(recent_ms, limit_ms)
