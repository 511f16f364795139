"""Each photograph's nearest neighbours among the photographs of other folds, found once for all questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel import Neighbours, fit_scaling, optimum_votes

MOST = 101  # neighbours that are kept


@dataclass(frozen=True, eq=False)
class Choices:
    """What a chain chooses for each photograph. yes: (n, links). column: (n,) of the model. right: (n,)."""

    yes: NDArray[np.bool_]
    column: NDArray[np.int64]
    right: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """near: (n, up to 101) rows by distance, none of the photograph's own fold. distances: the same shape. k: asked."""

    near: NDArray[np.int64]
    distances: NDArray[np.float64]
    k: int

    @property
    def mean_distance(self) -> NDArray[np.float64]:
        """Each photograph's mean distance to the k nearest, (n,)."""
        mean: NDArray[np.float64] = self.distances[:, : self.k].mean(axis=1)
        return mean

    def choices(self, right: NDArray[np.bool_], links: Sequence[int], costs: NDArray[np.float64]) -> Choices:
        """What a chain of these columns, asked in this order, chooses; in doubt the last column of all answers.

        right: (n, m). costs: (m,).
        """
        votes = optimum_votes(right[:, list(links)], costs[list(links)])
        yes = votes[self.near[:, : self.k]].sum(axis=1) * 2 > self.k
        columns = np.array([*links, right.shape[1] - 1])
        column = columns[np.where(yes.any(axis=1), yes.argmax(axis=1), len(links))]
        return Choices(yes, column, right[np.arange(len(right)), column])


def look_around(features: NDArray[np.float32], fold_of: NDArray[np.int64], k: int) -> Neighbourhood:
    """Find the neighbours; features: (n, f), not scaled: the range is that of the other folds, as when one is new."""
    folds, sizes = np.unique(fold_of, return_counts=True)
    most = min(MOST, len(features) - int(sizes.max()))
    near = np.zeros((len(features), most), np.int64)
    distances = np.zeros((len(features), most))
    for fold in folds:
        held, rest = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        scaling = fit_scaling(features[rest])
        found, distances[held] = Neighbours(scaling.apply(features[rest])).nearest_many(
            scaling.apply(features[held]), most
        )
        near[held] = rest[found]
    return Neighbourhood(near, distances, min(k, most))
