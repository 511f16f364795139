"""Decides what the chain reads, how many neighbours vote, and whether that adds anything; keeps how it was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.features import drop_correlated, sample
from jetsel.calibrate.fit.selection import Judgement, Known, Selection, judge, select, time_price
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import TimeFeatures
from jetsel.policies.kind import Plan
from jetsel.premodel import optimum_votes, select_models
from jetsel.wire import Criterion

SEED = 2018


@dataclass(frozen=True, eq=False)
class Planned:
    """The plan, and how it was found.

    kept: the features that the correlation left. dropped: kept feature -> those dropped beside it and their absolute
    correlation, None for one that never changes.
    """

    plan: Plan
    kept: tuple[str, ...]
    dropped: dict[str, list[tuple[str, float | None]]]
    selection: Selection
    judgement: Judgement


def make_plan(
    recording: Recording,
    fold_of: NDArray[np.int64],
    criterion: Criterion,
    theta_points: float,
    features_ms: TimeFeatures,
) -> Planned:
    """Select features and k for the chain under one criterion, on at most 2,000 images drawn at random.

    Both are selected once and not in each fold: what the chain gives in cross-validation is therefore, if anything, a
    little too good. The judgement is not: it is of images that had no part in the selection.
    """
    rows = sample(len(fold_of), SEED)
    seen, folds = recording.take(rows), fold_of[rows]
    right, costs = seen.right(criterion), seen.costs()
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
    plan = Plan(selection.features, selection.k, theta_points, features_ms(selection.features))
    return Planned(plan, kept, dropped, selection, judge(known, selection, cost))
