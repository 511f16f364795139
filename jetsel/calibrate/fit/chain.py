"""Choose on held-out images which features and how many neighbours the chain reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.goal import standard_error
from jetsel.features import KINDS, PAPER_SEVEN, SIZE
from jetsel.policies.chain import LearnedPaths
from jetsel.policies.kind import Table, TriedPoint
from jetsel.premodel import Neighbours, fit_scaling, worthiest
from jetsel.premodel.paths import PRICES, PathTable, means_near

KS = (31, 101, 301, 601)
LARGEST_SHARE = 0.7  # of the training images; a larger k would average over nearly all of them
SURE = 0.05  # probability of offering a chain that adds nothing


@dataclass(frozen=True)
class Reading:
    """The features that measure nearness, and the number of neighbours k; the default averages over all images."""

    features: tuple[str, ...] = ()
    k: int = 0


def try_readings(learned: LearnedPaths, held: Table) -> dict[Reading, TriedPoint]:
    """Return the results of each reading on held-out images, at each of PRICES."""
    train_table, paths = learned.table, PathTable.of(learned.table.paths, held.outputs)
    cost, prices = train_table.cost(held.costs), PRICES / held.costs.max()
    everywhere = train_table.right.mean(axis=0)[None], cost.mean(axis=0)[None]
    outcomes = {Reading(): _at_prices(paths, *everywhere, prices)}
    ks = [k for k in KS if k <= LARGEST_SHARE * len(train_table.right)]
    for names in _feature_sets(learned) if ks else ():
        scaling = fit_scaling(learned.columns_of(names))
        cached = Neighbours(scaling.apply(learned.columns_of(names)))
        near, _ = cached.nearest_many(scaling.apply(held.columns_of(names)), ks[-1])
        for k, (right, spent) in zip(ks, means_near(train_table.right, cost, near, ks), strict=True):
            outcomes[Reading(names, k)] = _at_prices(paths, right, spent, prices)
    return outcomes


def _feature_sets(learned: LearnedPaths) -> list[tuple[str, ...]]:
    """Return the sets of features to try, without features that are constant over all images."""
    varies = {name for name, column in zip(learned.feature_names, learned.features.T, strict=True) if np.ptp(column)}
    sets = (SIZE, KINDS, (*PAPER_SEVEN, *SIZE), learned.feature_names)
    return [names for one in sets if (names := tuple(name for name in one if name in varies))]


def _at_prices(
    paths: PathTable, chances: NDArray[np.floating], costs: NDArray[np.floating], prices: NDArray[np.float64]
) -> TriedPoint:
    """Return the result of the `worthiest` path for each image and price. chances, costs: (n, P), or (1, P) for all."""
    rows = np.arange(len(paths.right))
    chosen = [np.broadcast_to(worthiest(chances, costs, price), rows.shape) for price in prices]
    return TriedPoint(
        np.stack([paths.right[rows, one] for one in chosen], axis=1),
        np.stack([paths.ran[rows, one] for one in chosen], axis=1),
    )


@dataclass(frozen=True)
class Lift:
    """What reading neighbours gains on held-out images, compared with one path for all images.

    points: gain in accuracy, in percentage points, less the price of the extra cost and of the features; the mean over
    the prices at which several models compete. error_points: its standard error. adds: whether the gain is significant,
    corrected for the choice among several readings.
    """

    reading: Reading
    points: float
    error_points: float
    adds: bool


def choose_reading(
    tried: Mapping[Reading, TriedPoint],
    costs: NDArray[np.float64],
    features_cost: Mapping[Reading, float],
    groups: NDArray[np.int64] | None = None,
) -> Lift | None:
    """Return the reading that gains most, None if there are too few images for neighbours.

    costs: of each model, (m,). features_cost: of extracting each reading's features, in the same unit. groups: (n,),
    see Outcomes.
    """
    base = tried[Reading()]
    prices = PRICES / costs.max()
    mean_cost = (base.ran @ costs).mean(axis=0)
    competing = (mean_cost > costs.min()) & (mean_cost < costs.max())
    at = competing if competing.any() else np.ones(len(prices), bool)
    lifts = []
    for reading, one in tried.items():
        if not reading.k:
            continue
        gain = one.correct[:, at].astype(float) - base.correct[:, at]
        gain -= prices[at] * (one.ran[:, at] @ costs - base.ran[:, at] @ costs + features_cost[reading])
        each = gain.mean(axis=1)
        error = max(standard_error(each, groups), 1 / len(each))
        lifts.append((float(each.mean()), error, reading))
    if not lifts:
        return None
    best, error, reading = max(lifts, key=lambda one: one[0])
    sure = NormalDist().inv_cdf(1 - SURE / len(lifts))
    return Lift(reading, 100 * best, 100 * error, best > sure * error)
