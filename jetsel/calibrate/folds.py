"""Deals photographs into folds; those that are nearly the same stay together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError


def assign_folds(groups: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return each photograph's fold, (n,) int64 from 0; groups: (n,), whose members go into one fold.

    Large groups are dealt first, each to the smallest fold so far, in an order drawn by `seed`. Raises CalibrationError
    where there are fewer groups than folds.
    """
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < folds:
        raise CalibrationError(
            f"{len(groups)} photographs, of which {len(sizes)} differ, are too few for {folds} folds: add photographs"
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
