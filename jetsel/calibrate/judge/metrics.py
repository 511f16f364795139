"""The measures by which policies are compared (section 4.2), and how far each can be trusted."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.judge.findings import Interval

Z = 1.959964  # 95 % of a normal distribution lie within this number of deviations


def macro(truth: NDArray[np.int64], answered: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return precision, recall and F1, averaged over the classes that occur in `truth`: both (n,) class numbers.

    A class that was never answered has a precision and an F1 of 0; an answer of -1, a refusal, is of no class.
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
    """Return Wilson's 95 % interval of a share; groups: (n,), photographs that are nearly the same share a number.

    Near-duplicates tell little more than one of them: n is divided by the design effect of clusters (Kish 1965), the
    variance of the group sums over what it would be were all independent, if that is over 1.
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
    """Return the 95 % interval of a mean over many photographs, by the normal distribution: values (n,)."""
    mean = float(values.mean())
    half = Z * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else float("inf")
    return Interval(mean - half, mean + half)


def best_mix(times_ms: NDArray[np.float64], shares: NDArray[np.float64], mean_ms: float) -> float | None:
    """Return what the best mix of two models, dealt at random, is right on in this mean time; None: none is as fast.

    times_ms, shares: (m,), of single models. A model that is faster than the mean time counts alone, too.
    """
    fits = times_ms <= mean_ms * (1 + 1e-9)  # the mean of equal times may be a little less than each
    if not fits.any():
        return None
    best = float(shares[fits].max())
    for fast_ms, low in zip(times_ms[fits], shares[fits], strict=True):
        part = (mean_ms - fast_ms) / (times_ms[~fits] - fast_ms)
        best = max([best, *(low + part * (shares[~fits] - low)).tolist()])
    return best


def undominated(points: Iterable[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return those (mean ms, share or percent right, name) that none beats in both, fastest first; of equals one."""
    front: list[tuple[float, float, str]] = []
    for point in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front
