"""The metrics that compare policies (Taylor et al., section 4.2), and their confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.judge.findings import Interval

Z = 1.959964  # 95 % of a normal distribution lie within this number of deviations


def share_interval(correct: NDArray[np.bool_], groups: NDArray[np.int64] | None = None) -> Interval:
    """Return Wilson's 95 % confidence interval of the share of true values. groups: (n,), near-duplicates share one.

    Near-duplicates carry little more information than one image. So n is divided by the clusters' design effect (Kish
    1965): the variance of the group sums over that of independent images.
    """
    n = len(correct)
    share = float(correct.mean())
    size = n / _design_effect(correct, groups) if groups is not None and 0 < share < 1 else n
    middle = (share + Z * Z / (2 * size)) / (1 + Z * Z / size)
    half = Z / (1 + Z * Z / size) * float(np.sqrt(share * (1 - share) / size + Z * Z / (4 * size * size)))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def _design_effect(correct: NDArray[np.bool_], groups: NDArray[np.int64]) -> float:
    """Return by which factor near-duplicates that agree raise the variance of a share, at least 1 (Kish 1965)."""
    _, number = np.unique(groups, return_inverse=True)
    share = correct.mean()
    sums = np.bincount(number, correct - share)
    return max(1.0, float((sums * sums).sum() / (len(correct) * share * (1 - share))))


def undominated(points: Iterable[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return the points (mean ms, accuracy, name) that no faster one equals in accuracy, fastest first."""
    front: list[tuple[float, float, str]] = []
    for point in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front
