"""Which features the chain reads and how many neighbours vote: those by which it chooses better than chance.

Accuracy alone cannot say: features that leave the chain undecided hand more images to the fallback, which is right more
often because it is large. So a choice is scored by its lift: its accuracy less that of its own shares of models, dealt
to the images at random, which spends the same time in the same models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.papers.taylor.algorithm1 import optimum_votes, select_models
from calibration.papers.taylor.distances import Distances, drop_correlated, elected, nearest_columns, sample
from calibration.papers.taylor.paper_chain import ChainPlan
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import TimeFeatures

TRIED = (1, 3, 5, 7, 9, 15, 21, 31)
"""Numbers of neighbours; the paper has 5 (section 3.3)."""

SURE = 1.645  # standard errors: 95 % one-sided
MOST_DOUBT = 0.5
"""Of the images: a chain that leaves more to the fallback is that model with exceptions."""

BLOCK = 64

Cost = Callable[[tuple[str, ...]], float]
"""What extracting these features costs, as a share of right answers: see `time_price`."""


@dataclass(frozen=True, eq=False)
class Known:
    """What choices are learned from and judged by.

    features: (n, f), in the order of `names`. votes: (n, links), in the chain's order. right: (n, m), whose first
    columns are the links. fold_of: (n,). fallback: the column that answers in doubt.
    """

    features: NDArray[np.float32]
    names: tuple[str, ...]
    votes: NDArray[np.bool_]
    right: NDArray[np.bool_]
    fold_of: NDArray[np.int64]
    fallback: int

    def take(self, rows: NDArray[np.bool_]) -> Known:
        """The same of some images."""
        return Known(
            self.features[rows], self.names, self.votes[rows], self.right[rows], self.fold_of[rows], self.fallback
        )


@dataclass(frozen=True)
class Selection:
    """The features and k of the largest lift less cost, and how they were found (section 3.4.1).

    importance: feature -> points of lift lost without it, of those that the correlation left. counts: (features, k,
    points of lift) from all of them down to one. order: feature after feature as removed. by_k: k -> points of lift of
    the chosen features.
    """

    features: tuple[str, ...]
    k: int
    importance: dict[str, float]
    counts: list[tuple[int, int, float]]
    order: tuple[str, ...]
    by_k: dict[int, float]


@dataclass(frozen=True)
class Judgement:
    """What selected features give on images that had no part in their selection.

    lift, error: shares of right answers, and the standard error. cost: of the features, in the same unit. doubt: the
    share of images left to the fallback.
    """

    lift: float
    error: float
    cost: float
    doubt: float

    @property
    def adds(self) -> bool:
        """Whether the chain chooses surely better than chance, by more than its features cost, and not in doubt."""
        return self.lift - SURE * self.error > self.cost and self.doubt <= MOST_DOUBT


def lift_of(chosen: NDArray[np.int64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return what the choice adds on each image, (n,): 1 or 0, less what its shares of models give there at random.

    chosen: (n,) columns of right, (n, m). Its mean is the lift.
    """
    shares = np.bincount(chosen, minlength=right.shape[1]) / len(chosen)
    added: NDArray[np.float64] = right[np.arange(len(right)), chosen] - right @ shares
    return added


def time_price(right: NDArray[np.bool_], costs: NDArray[np.float64]) -> float:
    """Return the share of right answers that one ms (or mJ) buys by a coin between the cheapest and the best model.

    right: (n, m). costs: (m,), cheapest first. 0 if no model is better than the cheapest.
    """
    accuracy = right.mean(axis=0)
    best = int(accuracy.argmax())
    return 0.0 if best == 0 else float((accuracy[best] - accuracy[0]) / (costs[best] - costs[0]))


def select(known: Known, cost: Cost) -> Selection:
    """Remove the feature whose loss costs least lift, again and again, and keep the smallest set that is as good.

    As good is a lift less cost within one standard error of the largest (Breiman et al., Classification and Regression
    Trees, 1984, section 3.4.3): of many sets the best looks better than it is. Each set is scored with the k that suits
    it best, on neighbours in other folds.
    """
    distances = Distances(known.features, known.fold_of)
    left = list(range(len(known.names)))
    whole = distances.total(left)
    standing = [(tuple(left), _lifts(distances, whole, known, None))]
    order, importance = list[str](), dict[str, float]()
    while len(left) > 1:
        without = {column: _lifts(distances, whole, known, column) for column in left}
        if not importance:
            most = standing[0][1].best
            importance = {known.names[column]: 100 * (most - one.best) for column, one in without.items()}
        least = max(left, key=lambda column: (without[column].best, -left.index(column)))
        whole -= distances.of(least)
        left.remove(least)
        order.append(known.names[least])
        standing.append((tuple(left), without[least]))
    named = [(tuple(known.names[column] for column in columns), lifts) for columns, lifts in standing]
    worth = [lifts.best - cost(features) for features, lifts in named]
    enough = max(worth) - named[int(np.argmax(worth))][1].error
    features, chosen = [one for one, its in zip(named, worth, strict=True) if its >= enough][-1]
    counts = [(len(columns), lifts.k, 100 * lifts.best) for columns, lifts in standing]
    in_points = {k: 100 * lift for k, lift in chosen.by_k.items()}
    return Selection(features, chosen.k, importance, counts, tuple(order), in_points)


def judge(known: Known, selection: Selection, cost: Cost) -> Judgement:
    """Judge the way of selecting on halves of the folds: what one half selects is scored on the other, and vice versa.

    selection: what all select, for its cost. What selected itself on the very same images would always seem to add.
    """
    half_of = np.searchsorted(np.unique(known.fold_of), known.fold_of) % 2
    added, doubt = [], []
    for half in (0, 1):
        chosen = select(known.take(half_of == half), cost)
        columns = [known.names.index(name) for name in chosen.features]
        held = half_of != half
        squared = Distances(known.features[:, columns], known.fold_of).total(range(len(columns)))[held]
        link = elected(nearest_columns(squared, chosen.k), known.votes)
        doubt.append(link < 0)
        added.append(lift_of(np.where(link < 0, known.fallback, link), known.right[held]))
    each = np.concatenate(added)
    error = float(each.std(ddof=1) / np.sqrt(len(each)))
    return Judgement(float(each.mean()), error, cost(selection.features), float(np.concatenate(doubt).mean()))


@dataclass(frozen=True)
class _Lifts:
    """Of one set of features: the lift with each k, the best of them, its k and its standard error."""

    by_k: dict[int, float]
    k: int
    error: float

    @property
    def best(self) -> float:
        return self.by_k[self.k]


def _lifts(distances: Distances, whole: NDArray[np.float64], known: Known, without: int | None) -> _Lifts:
    """Return the lifts with each k that the other folds have neighbours for; of equals the smallest k is the best.

    whole: (n, n) squared distances, of which the column `without` is left out; a few rows at a time, which stay in the
    processor's cache, which makes it several times as fast.
    """
    most = int(np.isfinite(whole).sum(axis=1).min())
    tried = [k for k in TRIED if k <= most] or [most]
    near = []
    for start in range(0, len(whole), BLOCK):
        rows = slice(start, start + BLOCK)
        squared = whole[rows] if without is None else whole[rows] - distances.of(without, rows)
        near.append(nearest_columns(squared, tried[-1]))
    counted = known.votes[np.concatenate(near)].cumsum(axis=1, dtype=np.int16)
    added = {}
    for k in tried:
        yes = counted[:, k - 1] * 2 > k
        added[k] = lift_of(np.where(yes.any(axis=1), yes.argmax(axis=1), known.fallback), known.right)
    by_k = {k: float(each.mean()) for k, each in added.items()}
    best = max(by_k, key=lambda k: (by_k[k], -k))
    return _Lifts(by_k, best, float(added[best].std() / np.sqrt(len(known.right))))


SEED = 2018


@dataclass(frozen=True, eq=False)
class Planned:
    """The plan, and how it was found.

    kept: the features that the correlation left. dropped: kept feature -> those dropped beside it and their absolute
    correlation, None for one that never changes.
    """

    plan: ChainPlan
    kept: tuple[str, ...]
    dropped: dict[str, list[tuple[str, float | None]]]
    selection: Selection
    judgement: Judgement


def make_plan(
    recording: Recording,
    fold_of: NDArray[np.int64],
    theta_points: float,
    features_ms: TimeFeatures,
) -> Planned:
    """Select features and k for the chain, on at most 2,000 images drawn at random.

    Both are selected once and not in each fold: what the chain gives in cross-validation is therefore, if anything, a
    little too good. The judgement is not: it is of images that had no part in the selection.
    """
    rows = sample(len(fold_of), SEED)
    seen, folds = recording.take(rows), fold_of[rows]
    right, costs = seen.right, seen.costs()
    links, _ = select_models(right, costs, seen.models, theta_points)
    chain = [seen.models.index(model) for model in links]
    last = len(seen.models) - 1
    columns = chain if last in chain else [*chain, last]  # the fallback answers in doubt, whether or not it is a link
    kept, dropped = drop_correlated(recording.features, recording.feature_names)
    known = Known(
        seen.features[:, [seen.feature_names.index(name) for name in kept]],
        kept,
        optimum_votes(right[:, chain], costs[chain]),
        right[:, columns],
        folds,
        columns.index(last),
    )
    price = time_price(right, seen.costs("time"))

    def cost(names: tuple[str, ...]) -> float:
        return price * features_ms(names)

    selection = select(known, cost)
    plan = ChainPlan(selection.features, selection.k, theta_points, features_ms(selection.features))
    return Planned(plan, kept, dropped, selection, judge(known, selection, cost))
