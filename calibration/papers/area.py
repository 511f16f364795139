"""The area under the curve by which the papers' readers are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def area_under_curve(right: NDArray[np.bool_], said: NDArray[np.floating]) -> float | None:
    """Return how often what was said of one that is right is above what was said of one that is not, both (n,).

    A tie counts half (Hanley and McNeil 1982). None if all are right, or none is: there are no pairs.
    """
    _, place, counts = np.unique(said, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    hits = int(right.sum())
    others = len(right) - hits
    if not hits or not others:
        return None
    return float((ranks[right].sum() - hits * (hits + 1) / 2) / (hits * others))
