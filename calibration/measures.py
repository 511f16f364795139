"""Measures of policies that only experiments report."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.judge.findings import Interval
from jetsel.calibrate.judge.metrics import Z


def macro(truth: NDArray[np.int64], answered: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return precision, recall and F1, averaged over the classes that occur in `truth`.

    truth, answered: (n,) class numbers, -1 for a refusal. A class that was never answered has precision and F1 0.
    """
    classes = int(max(truth.max(), answered.max())) + 1
    hit = np.bincount(truth[truth == answered], minlength=classes)
    there = np.bincount(truth, minlength=classes)
    answers = np.bincount(answered[answered >= 0], minlength=classes)
    occurs = there > 0
    precision = np.divide(hit, answers, out=np.zeros(classes), where=answers > 0)[occurs]
    recall = (hit[occurs]) / there[occurs]
    both = precision + recall
    f1 = np.divide(2 * precision * recall, both, out=np.zeros(len(both)), where=both > 0)
    return float(precision.mean()), float(recall.mean()), float(f1.mean())


def mean_interval(values: NDArray[np.float64]) -> Interval:
    """Return the 95 % interval of the mean of (n,) values, by the normal distribution."""
    mean = float(values.mean())
    half = Z * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else float("inf")
    return Interval(mean - half, mean + half)


def best_mix(times_ms: NDArray[np.float64], shares: NDArray[np.float64], mean_ms: float) -> float | None:
    """Return the accuracy of the best random mix of two models within a mean time; None if no model is as fast.

    times_ms, shares: (m,), latency and accuracy of single models. A model that is fast enough also counts alone.
    """
    fits = times_ms <= mean_ms * (1 + 1e-9)  # rounding may put the mean of equal times below each of them
    if not fits.any():
        return None
    best = float(shares[fits].max())
    for fast_ms, low in zip(times_ms[fits], shares[fits], strict=True):
        part = (mean_ms - fast_ms) / (times_ms[~fits] - fast_ms)
        best = max([best, *(low + part * (shares[~fits] - low)).tolist()])
    return best
