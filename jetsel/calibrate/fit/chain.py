"""Choose on held-out images which features and how many neighbours the policy "chain" uses to pick a path.

A path is a single model or a cascade of two. The chain runs the path that did best on the neighbours of an image.
"""

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
from jetsel.premodel import Neighbours, fit_scaling, rounded, worthiest
from jetsel.premodel.paths import PRICES, PathTable, neighbour_means

KS = (31, 101, 301, 601, 1201, 2401)
LARGEST_SHARE = 0.7  # of the training images; a larger k would average over nearly all of them
MOST_FALSE_OFFERS = 0.05  # probability of offering a chain whose neighbours add nothing


@dataclass(frozen=True)
class Reading:
    """How a chain finds neighbours; the default averages over all images instead."""

    features: tuple[str, ...] = ()  # that measure how near images are
    k: int = 0  # number of neighbours


def try_readings(learned: LearnedPaths, held_out: Table) -> dict[Reading, TriedPoint]:
    """Return the results of each reading on held-out images, with one operating point for each of PRICES.

    A price is the accuracy that one unit of cost must gain. learned: the paths and the images to search for neighbours.
    """
    train_table, paths = learned.table, PathTable.evaluate(learned.table.paths, held_out.outputs)
    cost, prices = train_table.cost(held_out.costs), PRICES / held_out.costs.max()
    overall_means = train_table.right.mean(axis=0)[None], cost.mean(axis=0)[None]
    outcomes = {Reading(): _choose_at_prices(paths, *overall_means, prices)}
    ks = [k for k in KS if k <= LARGEST_SHARE * len(train_table.right)]
    for names in _feature_sets(learned) if ks else ():
        scaling = fit_scaling(learned.columns_of(names))
        cached = Neighbours(scaling.apply(learned.columns_of(names)))
        queries, query_of = np.unique(rounded(scaling.apply(held_out.columns_of(names))), axis=0, return_inverse=True)
        neighbour_rows, _ = cached.nearest_many(queries, ks[-1])
        query_of = query_of.reshape(-1)  # numpy 2.0 gives it two dimensions
        for k, (accuracy, mean_cost) in zip(
            ks, neighbour_means(train_table.right, cost, neighbour_rows, ks), strict=True
        ):
            outcomes[Reading(names, k)] = _choose_at_prices(paths, accuracy[query_of], mean_cost[query_of], prices)
    return outcomes


def _feature_sets(learned: LearnedPaths) -> list[tuple[str, ...]]:
    """Return the sets of features to try, without features that are constant over all images."""
    varying = {name for name, column in zip(learned.feature_names, learned.features.T, strict=True) if np.ptp(column)}
    by_kind = ((*SIZE, "colourfulness"), (*SIZE, "avg_brightness"), (*KINDS, "avg_brightness"))
    sets = (SIZE, *by_kind, (*PAPER_SEVEN, *SIZE), learned.feature_names)
    return list(filter(None, dict.fromkeys(tuple(name for name in names if name in varying) for names in sets)))


def _choose_at_prices(
    paths: PathTable, accuracies: NDArray[np.floating], costs: NDArray[np.floating], prices: NDArray[np.float64]
) -> TriedPoint:
    """Return the results of running, for each image and price, the path with the highest accuracy - price x cost.

    accuracies, costs: of the P paths near each image, (n, P), or (1, P) for all images.
    """
    image_rows = np.arange(len(paths.right))
    chosen = [np.broadcast_to(worthiest(accuracies, costs, price), image_rows.shape) for price in prices]
    return TriedPoint(
        np.stack([paths.right[image_rows, path_indices] for path_indices in chosen], axis=1),
        np.stack([paths.ran[image_rows, path_indices] for path_indices in chosen], axis=1),
    )


@dataclass(frozen=True)
class Lift:
    """How much the neighbours improve a chain on held-out images, compared with one path for all images.

    points: gain of accuracy in percentage points, less price x (extra cost of models and features); the mean over the
    prices at which several models compete.
    """

    reading: Reading
    points: float
    error_points: float  # standard error of `points`
    adds: bool  # whether the gain is significant, corrected for the choice among several readings


def choose_reading(
    tried: Mapping[Reading, TriedPoint],
    costs: NDArray[np.float64],
    features_cost: Mapping[Reading, float],
    groups: NDArray[np.int64] | None = None,
) -> Lift | None:
    """Return the reading that gains most, None if there are too few images for neighbours.

    tried: from `try_readings`. costs: of each model, (m,), in ms or mJ. features_cost: of extracting a reading's
    features, in the same unit. groups: (n,), numbers that near-duplicates share.
    """
    base = tried[Reading()]
    prices = PRICES / costs.max()
    mean_cost = (base.ran @ costs).mean(axis=0)
    competing = (mean_cost > costs.min()) & (mean_cost < costs.max())
    counted = competing if competing.any() else np.ones(len(prices), bool)
    lifts = []
    for reading, point in tried.items():
        if not reading.k:
            continue
        gain = point.correct[:, counted].astype(float) - base.correct[:, counted]
        extra_cost = point.ran[:, counted] @ costs - base.ran[:, counted] @ costs + features_cost[reading]
        gain -= prices[counted] * extra_cost
        gain_per_image = gain.mean(axis=1)
        error = max(standard_error(gain_per_image, groups), 1 / len(gain_per_image))
        lifts.append((float(gain_per_image.mean()), error, reading))
    if not lifts:
        return None
    largest_gain, error, reading = max(lifts, key=lambda lift: lift[0])
    required_errors = NormalDist().inv_cdf(1 - MOST_FALSE_OFFERS / len(lifts))
    return Lift(reading, 100 * largest_gain, 100 * error, largest_gain > required_errors * error)
