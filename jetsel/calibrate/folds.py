"""Deals images into folds, near-duplicates into one, and finds each image's neighbours in the other folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError
from jetsel.premodel import Neighbours, fit_scaling


def assign_folds(groups: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return each photograph's fold, (n,) int64 from 0; groups: (n,), whose members go into one fold.

    Large groups are dealt first, each to the smallest fold so far, in an order drawn by `seed`. Raises CalibrationError
    if there are fewer groups than folds.
    """
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < folds:
        raise CalibrationError(
            f"{len(groups)} images, {len(sizes)} of them distinct, are too few for {folds} folds: add images"
        )
    drawn = np.random.default_rng(seed).permutation(len(sizes))
    order = drawn[np.argsort(-sizes[drawn], kind="stable")]
    taken = np.zeros(folds, np.int64)
    fold_of_group = np.empty(len(sizes), np.int64)
    for group in order:
        fold = int(taken.argmin())
        fold_of_group[group] = fold
        taken[fold] += sizes[group]
    folds_found: NDArray[np.int64] = fold_of_group[number]
    return folds_found


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


def nearest_embedding(embeddings: NDArray[np.floating], fold_of: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distance of each embedding (n, width) to the nearest one of another fold, (n,)."""
    found = np.zeros(len(embeddings))
    points = embeddings.astype(np.float32)
    for fold in np.unique(fold_of):
        held = fold_of == fold
        _, distances = Neighbours(points[~held]).nearest_many(points[held], 1)
        found[held] = distances[:, 0]
    return found
