"""What the paper's figures show of the premodel, computed from the owner's own recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.findings import Alternative, ChainStudy, Link, Step
from jetsel.calibrate.fit.algorithm1 import select_models
from jetsel.calibrate.fit.alternatives import compare_techniques
from jetsel.calibrate.fit.cnn_premodel import MISSING, choose_by_network
from jetsel.calibrate.held_out import Plan, costs_of
from jetsel.calibrate.metrics import auc
from jetsel.calibrate.neighbourhood import Neighbourhood
from jetsel.calibrate.recording import Recording
from jetsel.errors import CalibrationError
from jetsel.premodel import Soundness, fit_scaling, optimum_votes
from jetsel.wire import Criterion

Pictures = Callable[[], NDArray[np.uint8]]
"""Every photograph of the recording at 32 x 32: (n, 3, 32, 32) uint8."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What the studies of one criterion look at. choice_ms: the chain's own time, without its features."""

    recording: Recording
    criterion: Criterion
    near: Neighbourhood
    fold_of: NDArray[np.int64]
    plan: Plan
    choice_ms: float

    @property
    def right(self) -> NDArray[np.bool_]:
        """Who is right on what, (n, m)."""
        return self.recording.right(self.criterion)

    @property
    def chooser_ms(self) -> float:
        """Features and choice."""
        return self.plan.features_ms + self.choice_ms

    @property
    def chooser_mj(self) -> float | None:
        """Their energy above idle power, None where it was not measured."""
        return self.recording.chooser_mj(self.chooser_ms) if self.recording.knows_energy else None

    def links(self, theta_points: float | None = None) -> tuple[list[int], list[Step]]:
        """The chain's columns in the order of Algorithm 1, and its steps."""
        theta = self.plan.theta_points if theta_points is None else theta_points
        links, steps = select_models(self.right, costs_of(self.recording), self.recording.models, theta)
        return [self.recording.models.index(model) for model in links], steps


def study_chain(
    scene: Scene,
    soundness: Soundness,
    k_accuracy: dict[int, float],
    temperatures: dict[str, float],
    pays_below_ms: float,
) -> ChainStudy:
    """Describe the chain."""
    recording, right, costs = scene.recording, scene.right, costs_of(scene.recording)
    columns, _ = scene.links()
    chosen = scene.near.choices(right, columns, costs)
    truth = optimum_votes(right[:, columns], costs[columns].tolist())
    links = [
        Link(
            recording.models[column],
            float((chosen.yes[:, i] == truth[:, i]).mean()),
            float(max(truth[:, i].mean(), 1 - truth[:, i].mean())),
        )
        for i, column in enumerate(columns)
    ]
    confidence = recording.confidences(scene.criterion, temperatures)[:, 0]
    features = len(scene.plan.features)
    return ChainStudy(
        k=scene.near.k,
        k_accuracy=k_accuracy,
        links=links,
        distance_limit=soundness.limit,
        distance_confidence=list(soundness.steps),
        auc_cheapest=auc(scene.near.shares(right[:, 0]), right[:, 0]),
        auc_confidence=auc(confidence, right[:, 0]),
        chooser_ms=scene.chooser_ms,
        chooser_mj=scene.chooser_mj,
        chooser_bytes=len(right) * (4 * (2 * features + 1) + right.shape[1]),  # points, their table, votes
        pays_below_ms=pays_below_ms,
    )


def by_number_of_models(scene: Scene) -> list[tuple[int, float, float, float, float]]:
    """Figure 11: for each number of links, without theta: the share right, and mean, least and most time in ms."""
    right, costs = scene.right, costs_of(scene.recording)
    columns, _ = scene.links(theta_points=-1.0)
    found = []
    for number in range(1, len(columns) + 1):
        chosen = scene.near.choices(right, columns[:number], costs)
        time_ms = scene.recording.costs("time")[chosen.column] + scene.chooser_ms
        found.append(
            (number, float(chosen.right.mean()), float(time_ms.mean()), float(time_ms.min()), float(time_ms.max()))
        )
    return found


def study_alternatives(scene: Scene, pictures: Pictures | None) -> tuple[list[Alternative], str | None]:
    """Figures 9 and 10, and why something of them is missing."""
    right, costs, times_ms = scene.right, costs_of(scene.recording), scene.recording.costs("time")
    columns, _ = scene.links()
    last = len(costs) - 1
    if last not in columns:
        columns.append(last)
    fallback = columns.index(last)
    votes = optimum_votes(right[:, columns], costs[columns].tolist())
    read = scene.recording.features[:, [scene.recording.feature_names.index(name) for name in scene.plan.features]]
    scaled = fit_scaling(read).apply(read)
    try:
        found = compare_techniques(
            scaled,
            votes,
            right[:, columns],
            times_ms[columns],
            scene.fold_of,
            scene.near.k,
            scene.plan.features_ms,
            fallback,
        )
    except CalibrationError as missing:
        return [], str(missing)
    if pictures is None:
        return found, MISSING
    optimum = np.where(votes.any(axis=1), votes.argmax(axis=1), fallback)
    network = choose_by_network(pictures(), optimum, len(columns), scene.fold_of)
    if network is None:
        return found, MISSING
    chosen, choice_ms = network
    share = float(right[np.arange(len(right)), np.array(columns)[chosen]].mean())
    whole_ms = float(times_ms[np.array(columns)[chosen]].mean()) + choice_ms
    return [*found, Alternative("CNN", share, whole_ms, choice_ms)], None
