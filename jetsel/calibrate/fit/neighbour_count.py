"""How many neighbours vote: tried by cross-validation, beside the paper's five."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.features import Distances, chosen_right, nearest_columns

TRIED = (1, 3, 5, 7, 9, 15, 21, 31, 51)


def accuracy_by_k(
    features: NDArray[np.float32],
    votes: NDArray[np.bool_],
    right: NDArray[np.bool_],
    fold_of: NDArray[np.int64],
    fallback: int,
    tried: Sequence[int] = TRIED,
) -> dict[int, float]:
    """Return the premodel's accuracy in percent with each k, held-out folds judged by the others.

    features: (n, f), not scaled; votes, right: (n, m) in the chain's order; fold_of: (n,); fallback: the column that
    answers in doubt. A k that is more than the other folds hold is left out.
    """
    squared = Distances(features, fold_of).total(range(features.shape[1]))
    _, sizes = np.unique(fold_of, return_counts=True)
    most = len(features) - int(sizes.max())
    return {
        k: 100 * float(chosen_right(nearest_columns(squared, k), votes, right, fallback).mean())
        for k in tried
        if k <= most
    }


def best_k(accuracy: dict[int, float]) -> int:
    """Return the k of the highest accuracy; of equals the smallest."""
    return max(accuracy, key=lambda k: (accuracy[k], -k))
