"""Decides what the premodel reads and how many neighbours vote, and keeps how that was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.features import Removal, drop_correlated, remove_greedily, sample
from jetsel.calibrate.fit.neighbour_count import accuracy_by_k, best_k
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import TimeFeatures
from jetsel.policies.chain import PAPER_K
from jetsel.policies.kind import Plan
from jetsel.premodel import optimum_votes, select_models
from jetsel.wire import Criterion

SEED = 2018


@dataclass(frozen=True, eq=False)
class Planned:
    """The plan, and how it was found.

    kept: the features that the correlation left. dropped: kept feature -> those dropped beside it and their absolute
    correlation, None for one that never changes. k_accuracy: k -> how often the optimum is named, in percent.
    """

    plan: Plan
    kept: tuple[str, ...]
    dropped: dict[str, list[tuple[str, float | None]]]
    removal: Removal
    k_accuracy: dict[int, float]


def make_plan(
    recording: Recording,
    fold_of: NDArray[np.int64],
    criterion: Criterion,
    theta_points: float,
    features_ms: TimeFeatures,
) -> Planned:
    """Choose features and k for the chain under one criterion, on at most 2,000 photographs drawn at random.

    Both are chosen once and not in each fold: what the chain gives in cross-validation is therefore, if anything, a
    little too good; everything else is learned without the photographs that it is judged on.
    """
    rows = sample(len(fold_of), SEED)
    seen, folds = recording.take(rows), fold_of[rows]
    right, costs = seen.right(criterion), seen.costs()
    links, _ = select_models(right, costs, seen.models, theta_points)
    chain = [seen.models.index(model) for model in links]
    last = len(seen.models) - 1
    columns = chain if last in chain else [*chain, last]  # the fallback answers in doubt, whether or not it is a link
    votes = optimum_votes(right[:, chain], costs[chain])
    table = np.zeros((len(rows), len(columns)), bool)
    table[:, : len(chain)] = votes
    kept, dropped = drop_correlated(recording.features, recording.feature_names)
    wanted = seen.features[:, [seen.feature_names.index(name) for name in kept]]
    fallback = columns.index(last)
    removal = remove_greedily(wanted, kept, table, right[:, columns], folds, PAPER_K, fallback)
    chosen = seen.features[:, [seen.feature_names.index(name) for name in removal.chosen]]
    # How often the optimum is named, not how often the answer is right: a large k leaves more to the fallback, which is
    # more often right because it is expensive.
    k_accuracy = accuracy_by_k(chosen, table, table, folds, fallback)
    plan = Plan(removal.chosen, best_k(k_accuracy), theta_points, features_ms(removal.chosen))
    return Planned(plan, kept, dropped, removal, k_accuracy)
