"""The paper's chain with its votes, as a policy: five neighbours in its seven features, three links, no distance limit.

`chain-paper` was a policy of jetsel once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from calibration.papers.taylor.algorithm1 import optimum_votes, select_models
from jetsel.artefact.calibration import Calibration, PolicyPart
from jetsel.base.errors import InDoubtError
from jetsel.features import PAPER_SEVEN
from jetsel.policies.kind import Kind, Table, model_columns
from jetsel.policies.policy import Decision, Evidence, Policy, Run, Steps, run_or_fall_back
from jetsel.premodel import Neighbours, Scaling, fit_scaling

NAME = "chain-paper"
PAPER_K = 5  # section 3.3
PAPER_LINKS = 3  # section 3.2: what their Algorithm 1 ended with


@dataclass(frozen=True)
class ChainPlan:
    """What is decided once, before anything is learned. theta_points: of Algorithm 1; k: the neighbours that vote.

    features_ms: of extracting these features.
    """

    features: tuple[str, ...]
    k: int
    theta_points: float = 0.5
    features_ms: float = 0.0


PAPER = ChainPlan(PAPER_SEVEN, PAPER_K, theta_points=-1.0)


@dataclass(frozen=True, eq=False)
class VotingChain:
    """Runs the first model for which most of the nearest images vote (sections 3.1 and 3.3); in doubt the fallback.

    votes: (n, models), of the image behind each of n neighbours.
    """

    name: str
    models: tuple[str, ...]
    features: tuple[str, ...]
    k: int
    scaling: Scaling
    neighbours: Neighbours
    votes: NDArray[np.bool_]

    @property
    def first_models(self) -> tuple[str, ...]:
        """Any of its models may be the one."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose, run, answer."""
        assert photo.features is not None
        near, distances = self.neighbours.nearest(self.scaling.apply(photo.features), self.k)
        distance = float(distances.mean())
        yes = self.votes[near].sum(axis=0)
        for model, count in zip(self.models, yes.tolist(), strict=True):
            if count * 2 > self.k:
                because = f"{count} of {self.k} neighbours vote for {model}"
                seen, because = yield from run_or_fall_back(model, because, photo.fallback)
                return Decision(seen, because, distance=distance)
        because = "in doubt: no neighbours vote for any model"
        if photo.fallback is None:
            raise InDoubtError(because)
        (seen,) = yield Run((photo.fallback,), because)
        return Decision(seen, because, in_doubt=True, distance=distance)


class Links(Struct, frozen=True):
    """The models in the order in which they are asked."""

    models: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Learned:
    """The links, the images' votes for them, (n, links), and the images' features, (n, f)."""

    links: tuple[str, ...]
    votes: NDArray[np.bool_]
    features: NDArray[np.float32]


class PaperChainKind(Kind):
    """The chain of votes with the paper's settings; an experiment fits it beside the policies of the product."""

    name = NAME

    def learn(self, train: Table) -> Learned | None:
        """Return the first three models of Algorithm 1 and the seven features; None if they were not recorded."""
        if not set(PAPER.features) <= set(train.feature_names):
            return None
        links, _ = select_models(train.right, train.costs, train.models, PAPER.theta_points)
        links = links[:PAPER_LINKS]
        linked = [train.models.index(model) for model in links]
        return Learned(
            links, optimum_votes(train.right[:, linked], train.costs[linked]), train.columns_of(PAPER.features)
        )

    def to_part(self, learned: Learned, _chosen: Any) -> PolicyPart:
        """Store the links, and scaled features and votes of each image."""
        scaling = fit_scaling(learned.features)
        arrays = {"minimum": scaling.minimum, "maximum": scaling.maximum, "points": scaling.apply(learned.features)}
        return PolicyPart(Links(learned.links), arrays | {"votes": learned.votes})

    def make(self, part: PolicyPart, calibration: Calibration) -> dict[str, Policy]:
        """Return the policy."""
        models: tuple[str, ...] = part.facts.models
        model_columns(models, calibration)
        near = Neighbours(part.arrays["points"])
        k = min(PAPER.k, len(near.points))
        scaling = Scaling(part.arrays["minimum"], part.arrays["maximum"])
        return {NAME: VotingChain(NAME, models, PAPER.features, k, scaling, near, part.arrays["votes"])}
