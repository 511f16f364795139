"""The paths that a chain chooses among: single models and cascades of two, with their results on known images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel.cascades import FittedCascade, Outputs, replay_cascade
from jetsel.premodel.neighbours import worthiest

STOPPING = (0.2, 0.4, 0.6, 0.8)  # shares of the images that a cascade's first model answers alone
MOST_PATHS = 30
PRICES = np.geomspace(0.003, 4.0, 30)
"""Prices of cost: the share of right answers that must be gained to pay for the most expensive model's cost."""
BLOCK = 64  # images at a time, so that their neighbours' columns fit the processor's cache


@dataclass(frozen=True, eq=False)
class PathTable:
    """Results of P paths on n images. right: (n, P), whether the answer is right. ran: (n, P, m), which models ran."""

    paths: tuple[FittedCascade, ...]
    right: NDArray[np.bool_]
    ran: NDArray[np.bool_]

    @classmethod
    def evaluate(cls, paths: Sequence[FittedCascade], outputs: Outputs) -> PathTable:
        """Run these paths on the images of `outputs`."""
        outcomes = [replay_cascade(path, outputs) for path in paths]
        return cls(
            tuple(paths), np.stack([right for right, _ in outcomes], 1), np.stack([ran for _, ran in outcomes], 1)
        )

    def take(self, rows: NDArray[np.int64]) -> PathTable:
        """Return the results on the images of these rows, in their order."""
        return PathTable(self.paths, self.right[rows], self.ran[rows])

    def cost(self, costs: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the cost of each path on each image, (n, P). costs: (m,), of each model, in ms or mJ."""
        return (self.ran @ costs).astype(np.float32)


def possible_paths(outputs: Outputs) -> list[FittedCascade]:
    """Return each model alone, and each pair of models at the four thresholds of STOPPING."""
    models = range(len(outputs.costs))
    paths = [FittedCascade((model,), (0.0,)) for model in models]
    for first in models:
        thresholds = np.quantile(outputs.after((first,))[0], 1 - np.array(STOPPING)).tolist()
        paths += [FittedCascade((first, last), (limit, 0.0)) for last in models if last > first for limit in thresholds]
    return paths


def select_paths(outputs: Outputs, neighbours: NDArray[np.int64]) -> PathTable:
    """Return the at most 30 paths that a chain would choose most often, for q sample images at all PRICES of cost.

    neighbours: (q, k), rows of the k nearest images of each sample. The choice by the means over all images counts too.
    """
    table = PathTable.evaluate(possible_paths(outputs), outputs)
    cost, prices = table.cost(outputs.costs), PRICES / outputs.costs.max()
    right, spent = neighbour_means(table.right, cost, neighbours, (neighbours.shape[1],))[0]
    chosen = np.zeros(len(table.paths))
    for price in prices:
        chosen += np.bincount(worthiest(right, spent, price), minlength=len(chosen))
        chosen[worthiest(table.right.mean(axis=0), cost.mean(axis=0), price)] += len(neighbours)
    columns = np.sort(np.argsort(-chosen, kind="stable")[: min(MOST_PATHS, np.count_nonzero(chosen))])
    return PathTable(tuple(table.paths[column] for column in columns), table.right[:, columns], table.ran[:, columns])


def neighbour_means(
    right: NDArray[np.bool_], cost: NDArray[np.float32], neighbours: NDArray[np.int64], ks: Sequence[int]
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Return, for each k, the paths' shares of right answers and mean costs over the k nearest images, (q, P) each.

    right, cost: (n, P), on all n images. neighbours: (q, largest k), rows of the nearest, nearest first. ks: rising.
    """
    shape = len(neighbours), right.shape[1]
    means_by_k = [(np.empty(shape, np.float32), np.empty(shape, np.float32)) for _ in ks]
    for start in range(0, len(neighbours), BLOCK):
        rows = neighbours[start : start + BLOCK]
        for values, index in ((right, 0), (cost, 1)):
            total = np.zeros((len(rows), right.shape[1]), np.float32)
            done = 0
            for k, means in zip(ks, means_by_k, strict=True):
                total += values[rows[:, done:k]].sum(axis=1, dtype=np.float32)
                means[index][start : start + BLOCK] = total / k
                done = k
    return means_by_k
