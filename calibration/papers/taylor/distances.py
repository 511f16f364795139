"""Features that do not repeat one another, and distances between images by some of them, as Algorithm 1 needs them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jetsel.features import PAPER_SEVEN
from jetsel.premodel import fit_scaling

MOST_CORRELATED = 0.75  # section 3.4.1
SAMPLE = 2000  # photographs: pairs grow with the square, and accuracies are known to a point with these
GROUPS = 16  # for each neighbour: groups whose minima bound its distance, measured as the fastest for five


def drop_correlated(
    features: NDArray[np.float32], names: Sequence[str], documented: Sequence[str] = PAPER_SEVEN
) -> tuple[tuple[str, ...], dict[str, list[tuple[str, float | None]]]]:
    """Return the features kept, in the order of `names`, and for each of them what was dropped for its sake.

    Of each pair whose absolute Pearson correlation is over 0.75 one goes (section 3.4.1, Table 3): the documented ones
    (Table 4) are asked first, then the others in the order of `names`, and each that stays drops what is too much like
    it. A feature that is the same on every photograph says nothing, and is dropped under its own name.
    features: (n, f).
    """
    wide = features.astype(np.float64)
    constant = wide.std(axis=0) == 0
    centred = wide - wide.mean(axis=0)
    norms = np.where(constant, 1.0, np.sqrt((centred * centred).sum(axis=0)))
    correlation = np.abs((centred / norms).T @ (centred / norms))
    asked = sorted(range(len(names)), key=lambda i: (names[i] not in documented, i))
    removed: dict[str, list[tuple[str, float | None]]] = {
        names[i]: [(names[i], None)] for i in range(len(names)) if constant[i]
    }
    kept: list[int] = []
    for i in asked:
        if constant[i]:
            continue
        alike = next((j for j in kept if correlation[i, j] > MOST_CORRELATED), None)
        if alike is None:
            kept.append(i)
        else:
            removed.setdefault(names[alike], []).append((names[i], float(correlation[i, alike])))
    return tuple(names[i] for i in sorted(kept)), removed


class Distances:
    """Squared distances between photographs of different folds, feature by feature, so that one can be left out."""

    def __init__(self, features: NDArray[np.float32], fold_of: NDArray[np.int64]) -> None:
        """Prepare (n, f) features, not scaled, and the folds (n,)."""
        scaled = fit_scaling(features).apply(features)
        self._columns = np.ascontiguousarray(scaled.T)
        self._same_fold = fold_of[:, None] == fold_of[None, :]

    def of(self, column: int, rows: slice = slice(None)) -> NDArray[np.float32]:  # it does not change
        """One feature's part of the squared distances of some rows to all, (rows, n)."""
        apart: NDArray[np.float32] = self._columns[column][rows, None] - self._columns[column][None, :]
        apart *= apart
        return apart

    def total(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """The squared distances by these features, infinite within a fold: (n, n).

        float64, so that parts can be taken off again: in float32 what many features leave behind is as large as the
        distance to the nearest by the few that stay.
        """
        whole: NDArray[np.float64] = np.where(self._same_fold, np.inf, 0.0)
        for column in columns:
            whole += self.of(column)
        return whole


def nearest_columns(squared: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """The columns of the k smallest of each row, smallest first, of equals the first: squared (rows, n) -> (rows, k).

    The k-th smallest of the minima of disjoint groups is no less than the k-th smallest of all, so hardly more than k
    are left to be sorted: some 6 times as fast as np.argpartition on 2,000 columns, for a few k.
    """
    rows, n = squared.shape
    groups = min(n, GROUPS * k)
    minima = squared[:, : n // groups * groups].reshape(rows, -1, groups).min(axis=1)
    bound = np.partition(minima, k - 1, axis=1)[:, k - 1 : k]
    row, column = np.divmod(np.flatnonzero(squared <= bound), n)
    order = np.lexsort((squared[row, column], row))
    begin = np.searchsorted(row, np.arange(rows))
    found: NDArray[np.int64] = column[order][begin[:, None] + np.arange(k)]
    return found


def elected(near: NDArray[np.int64], votes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first link for which most neighbours vote, (n,); -1 if there is none, which is doubt.

    near: (n, k) rows of each one's neighbours. votes: (n, links), in the chain's order.
    """
    yes = votes[near].sum(axis=1) * 2 > near.shape[1]
    found: NDArray[np.int64] = np.where(yes.any(axis=1), yes.argmax(axis=1), -1)
    return found


def chosen_right(
    near: NDArray[np.int64], votes: NDArray[np.bool_], right: NDArray[np.bool_], fallback: int
) -> NDArray[np.bool_]:
    """Whether the model that the chain would choose is right, (n,); near: (n, k) rows of each one's neighbours.

    votes: (n, links), right: (n, m), whose first columns are the links in the chain's order; in doubt the column
    `fallback` answers.
    """
    link = elected(near, votes)
    found: NDArray[np.bool_] = right[np.arange(len(right)), np.where(link < 0, fallback, link)]
    return found


def sample(photographs: int, seed: int, most: int = SAMPLE) -> NDArray[np.int64]:
    """Return the rows of at most this number of images, drawn at random, in order."""
    drawn = np.random.default_rng(seed).permutation(photographs)[:most]
    return np.sort(drawn)
