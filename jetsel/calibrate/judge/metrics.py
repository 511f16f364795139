"""The metrics that compare policies (Taylor et al., section 4.2), and their confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.judge.findings import Interval

Z = 1.959964  # 95 % of a normal distribution lie within this number of deviations


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


def share_interval(correct: NDArray[np.bool_], groups: NDArray[np.int64] | None = None) -> Interval:
    """Return Wilson's 95 % interval of a share. groups: (n,), near-duplicates share a number.

    Near-duplicates carry little more information than one image. So n is divided by the clusters' design effect (Kish
    1965), the variance of the group sums over that of independent images, if it exceeds 1.
    """
    n = len(correct)
    share = float(correct.mean())
    size = n / _design_effect(correct, groups) if groups is not None and 0 < share < 1 else n
    middle = (share + Z * Z / (2 * size)) / (1 + Z * Z / size)
    half = Z / (1 + Z * Z / size) * float(np.sqrt(share * (1 - share) / size + Z * Z / (4 * size * size)))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def _design_effect(correct: NDArray[np.bool_], groups: NDArray[np.int64]) -> float:
    _, number = np.unique(groups, return_inverse=True)
    share = correct.mean()
    sums = np.bincount(number, correct - share)
    return max(1.0, float((sums * sums).sum() / (len(correct) * share * (1 - share))))


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


def undominated(points: Iterable[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return the undominated points (mean ms, accuracy, name), fastest first; of equal points one."""
    front: list[tuple[float, float, str]] = []
    for point in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front
