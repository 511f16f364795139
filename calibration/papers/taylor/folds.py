"""Finds each image's neighbours in the other folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel import Neighbours, fit_scaling


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """near: (n, k) rows by distance, none of the photograph's own fold. distance: (n,), the mean of those."""

    near: NDArray[np.int64]
    distance: NDArray[np.float64]


def nearest_in_other_folds(features: NDArray[np.float32], fold_of: NDArray[np.int64], k: int) -> Neighbourhood:
    """Find k neighbours, or as many as the other folds hold; features: (n, f), not scaled.

    They are scaled to the range of the other folds, as when a photograph is new.
    """
    folds, sizes = np.unique(fold_of, return_counts=True)
    k = min(k, len(features) - int(sizes.max()))
    near = np.zeros((len(features), k), np.int64)
    distances = np.zeros((len(features), k))
    for fold in folds:
        held, rest = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        scaling = fit_scaling(features[rest])
        found, distances[held] = Neighbours(scaling.apply(features[rest])).nearest_many(
            scaling.apply(features[held]), k
        )
        near[held] = rest[found]
    return Neighbourhood(near, distances.mean(axis=1))
