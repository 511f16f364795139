"""Which features the premodel reads: first those that do not repeat one another, then those that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.features import PAPER_SEVEN
from jetsel.premodel import fit_scaling

MOST_CORRELATED = 0.75  # section 3.4.1
TOLERANCE_POINTS = 0.2
SAMPLE = 2000  # photographs: pairs grow with the square, and accuracies are known to a point with these
GROUPS = 16  # for each neighbour: groups whose minima bound its distance, measured as the fastest for five


@dataclass(frozen=True)
class Removal:
    """How features were removed one by one.

    importance: feature -> points of accuracy lost without it, of those that the correlation left. counts: (features,
    accuracy in percent) from all of them down to one. chosen: those that stay. order: feature after feature as removed.
    """

    importance: dict[str, float]
    counts: list[tuple[int, float]]
    chosen: tuple[str, ...]
    order: tuple[str, ...]


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

    def of(self, column: int) -> NDArray[np.float32]:
        """One feature's part of all squared distances, (n, n)."""
        apart: NDArray[np.float32] = self._columns[column][:, None] - self._columns[column][None, :]
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


def chosen_right(
    near: NDArray[np.int64], votes: NDArray[np.bool_], right: NDArray[np.bool_], fallback: int
) -> NDArray[np.bool_]:
    """Whether the model that the chain would choose is right, (n,); near: (n, k) rows of each one's neighbours.

    votes: (n, links), right: (n, m), whose first columns are the links in the chain's order; in doubt the column
    `fallback` answers.
    """
    yes = votes[near].sum(axis=1) * 2 > near.shape[1]
    chosen = np.where(yes.any(axis=1), yes.argmax(axis=1), fallback)
    found: NDArray[np.bool_] = right[np.arange(len(right)), chosen]
    return found


def remove_greedily(
    features: NDArray[np.float32],
    names: Sequence[str],
    votes: NDArray[np.bool_],
    right: NDArray[np.bool_],
    fold_of: NDArray[np.int64],
    k: int,
    fallback: int,
    tolerance_points: float = TOLERANCE_POINTS,
) -> Removal:
    """Remove the least important feature again and again (section 3.4.1), judged by cross-validation.

    The features stay that are left when any further removal would leave the premodel more than tolerance_points below
    the best that any number of features gave. features: (n, f); votes, right: (n, m), the chain's order; fold_of: (n,).
    """
    distances = Distances(features, fold_of)
    left = list(range(len(names)))
    whole = distances.total(left)

    def accuracy(squared: NDArray[np.float64]) -> float:
        return 100 * float(chosen_right(nearest_columns(squared, k), votes, right, fallback).mean())

    best = accuracy(whole)
    counts, order, standing = [(len(left), best)], [], [(best, tuple(left))]
    importance: dict[str, float] = {}
    while len(left) > 1:
        without = {column: accuracy(whole - distances.of(column)) for column in left}
        if not importance:
            importance = {names[column]: best - value for column, value in without.items()}
        least = max(left, key=lambda column: (without[column], -left.index(column)))
        whole -= distances.of(least)
        left.remove(least)
        order.append(names[least])
        counts.append((len(left), without[least]))
        standing.append((without[least], tuple(left)))
    enough = max(value for value, _ in standing) - tolerance_points
    chosen = min((columns for value, columns in standing if value >= enough), key=len)
    return Removal(importance, counts, tuple(names[column] for column in chosen), tuple(order))


def sample(photographs: int, seed: int, most: int = SAMPLE) -> NDArray[np.int64]:
    """Return the rows of at most so many photographs, drawn at random, in order."""
    drawn = np.random.default_rng(seed).permutation(photographs)[:most]
    return np.sort(drawn)
