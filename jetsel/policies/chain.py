"""The premodel of Taylor et al. as a policy: features in, one model chosen before any has run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, Part
from jetsel.artefact.parts import Links
from jetsel.base.errors import InDoubtError
from jetsel.policies.kind import ChainPlan, Kind, Table, columns
from jetsel.policies.policy import Decision, Evidence, Policy, Run, Steps, run_or_fall_back
from jetsel.premodel import (
    Chain,
    Choice,
    Neighbours,
    Scaling,
    Soundness,
    fit_scaling,
    optimum_votes,
    select_models,
)


@dataclass(frozen=True)
class ChainPolicy:
    """Runs the one model that the chain of nearest-neighbour links names (sections 3.1 and 3.3)."""

    name: str
    chain: Chain
    features: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may choose."""
        return self.chain.models

    @property
    def first(self) -> tuple[str, ...]:
        """Any of its models may be the one."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose, run, answer. No link's vote, or a chosen model that is unavailable, leaves it to the fallback."""
        assert photo.features is not None
        choice = self.chain.choose(photo.features)
        if choice.model is not None:
            votes = choice.votes[self.models.index(choice.model)]
            because = f"{votes} of {self.chain.k} neighbours vote for {choice.model}{_confidence_words(choice)}"
            seen, because = yield from run_or_fall_back(choice.model, because, photo.fallback)
            return Decision(seen, because, distance=choice.distance)
        far = f"the nearest known images are {choice.distance:.3f} away, too far to be trusted"
        because = f"in doubt: {far if choice.is_far else 'no neighbours vote for any model'}"
        if photo.fallback is None:
            raise InDoubtError(f'{because}: send "on_doubt": "use" for the fallback model\'s answer')
        (seen,) = yield Run((photo.fallback,), because)
        return Decision(seen, f"{because}; {photo.fallback} is the fallback", in_doubt=True, distance=choice.distance)


def _confidence_words(choice: Choice) -> str:
    """What calibration knows of choices at this distance (section 6)."""
    return "" if choice.confidence is None else f"; such choices were right {100 * choice.confidence:.0f} % of the time"


@dataclass(frozen=True, eq=False)
class Learned:
    """The links, and the photographs' features (n, f)."""

    links: tuple[str, ...]
    features: NDArray[np.float32]


class ChainKind(Kind):
    """Learned are links and features; chosen is the soundness. Its points are the photographs' scaled features."""

    name = "chain"

    def learn(self, train: Table, plan: ChainPlan) -> Learned | None:
        """Select the models (Algorithm 1)."""
        links, _ = select_models(train.right, train.costs, train.models, plan.theta_points)
        return Learned(links, train.of(plan.features))

    def fitted(self, learned: Learned, chosen: Any) -> Part:
        """Store the scaled features, the links, and what held-out photographs told of distances."""
        scaling = fit_scaling(learned.features)
        arrays = {"minimum": scaling.minimum, "maximum": scaling.maximum, "points": scaling.apply(learned.features)}
        return Part(Links(learned.links, chosen or Soundness()), arrays)

    def make(self, part: Part, calibration: Calibration) -> dict[str, Policy]:
        """Return the policy; each photograph votes for its optimum among the links."""
        scaling = Scaling(part.arrays["minimum"], part.arrays["maximum"])
        near = Neighbours(part.arrays["points"])
        features, k = self.asks(calibration)
        if near.points.shape[1] != len(features):
            raise ValueError(f"its points have {near.points.shape[1]} features, not {len(features)}")
        links: Links = part.facts
        linked = columns(links.models, calibration)
        votes = optimum_votes(calibration.right[:, linked], calibration.cost_array[linked])
        chain = Chain(links.models, votes, near, scaling, k, links.soundness)
        return {self.name: ChainPolicy(self.name, chain, features)}

    def asks(self, calibration: Calibration) -> tuple[tuple[str, ...], int]:
        """Return the features in which neighbours are near, and how many of them are asked."""
        return calibration.features, calibration.k
