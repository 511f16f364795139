"""What the fitted premodel gives on the owner's own recording: links, neighbours, distance, cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.findings import ChainStudy, Link
from jetsel.calibrate.metrics import auc
from jetsel.calibrate.neighbourhood import Neighbourhood
from jetsel.calibrate.recording import Recording
from jetsel.policies.kind import Plan
from jetsel.premodel import Soundness, Step, optimum_votes, select_models
from jetsel.wire import Criterion


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

    def links(self) -> tuple[list[int], list[Step]]:
        """The chain's columns in the order of Algorithm 1, and its steps."""
        costs, theta = self.recording.costs(), self.plan.theta_points
        links, steps = select_models(self.right, costs, self.recording.models, theta)
        return [self.recording.models.index(model) for model in links], steps


def study_chain(
    scene: Scene,
    soundness: Soundness,
    k_accuracy: dict[int, float],
    temperatures: dict[str, float],
    pays_below_ms: float,
) -> ChainStudy:
    """Describe the chain."""
    recording, right, costs = scene.recording, scene.right, scene.recording.costs()
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
