"""The premodel of Taylor et al. as a policy: features in, one model chosen before any has run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jetsel.errors import InDoubtError
from jetsel.features import PAPER_SEVEN
from jetsel.policies.kind import Kind, Part, Plan, Table, columns
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
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration

PAPER_K = 5  # section 3.3
PAPER_LINKS = 3  # section 3.2: what their Algorithm 1 ended with


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
            because = f"the neighbours vote for {choice.model}{_trust(choice)}"
            seen, because = yield from run_or_fall_back(choice.model, because, photo.fallback)
            return Decision(seen, because, distance=choice.distance)
        far = f"the nearest known photographs are {choice.distance:.3f} away, too far to be believed"
        because = f"in doubt: {far if choice.is_far else 'no neighbours vote for any model'}"
        if photo.fallback is None:
            raise InDoubtError(f'{because}: send "on_doubt": "use" for the fallback model\'s answer')
        (seen,) = yield Run((photo.fallback,), because)
        return Decision(seen, f"{because}; {photo.fallback} is the fallback", in_doubt=True, distance=choice.distance)


def _trust(choice: Choice) -> str:
    """What calibration knows of choices at this distance (section 6)."""
    return "" if choice.confidence is None else f"; such choices were right {100 * choice.confidence:.0f} % of the time"


class Facts(Struct, frozen=True, forbid_unknown_fields=True):
    """By criterion: the chain's models in the order of Algorithm 1, and what its distances say."""

    links: dict[Criterion, tuple[str, ...]]
    soundness: dict[Criterion, Soundness] = {}


class ChainKind(Kind):
    """Learned are the links; the points, features and k are the calibration's own. Chosen is the soundness."""

    name = "chain"
    facts = Facts

    def learn(self, train: Table, plan: Plan) -> Any:
        """Select the models (Algorithm 1)."""
        links, _ = select_models(train.right, train.costs, train.models, plan.theta_points)
        return links

    def fitted(self, learned: Mapping[Criterion, Any], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the links, and what held-out photographs told of distances."""
        return Part(
            Facts(dict(learned), {criterion: sound for criterion, sound in chosen.items() if sound is not None})
        )

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """All criteria share the neighbours."""
        scaling, near = Scaling(calibration.minimum, calibration.maximum), Neighbours(calibration.points)
        return self._made(part.facts, calibration, scaling, near, calibration.k, calibration.features)

    def _made(
        self,
        facts: Facts,
        calibration: Calibration,
        scaling: Scaling,
        near: Neighbours,
        k: int,
        features: tuple[str, ...],
    ) -> dict[Criterion, Policy]:
        """Each photograph votes for its optimum among the links."""
        made: dict[Criterion, Policy] = {}
        for criterion, links in facts.links.items():
            linked = columns(links, calibration)
            votes = optimum_votes(calibration.right[criterion][:, linked], calibration.cost_array[linked])
            chain = Chain(links, votes, near, scaling, k, facts.soundness.get(criterion, Soundness()))
            made[criterion] = ChainPolicy(self.name, chain, features)
        return made


class PaperChainKind(ChainKind):
    """The chain with the paper's own settings: five neighbours in its seven features, three links, no distance limit.

    It has points of its own, since the calibration's are in other features.
    """

    name = "chain-paper"

    def learn(self, train: Table, _plan: Plan) -> Any:
        """Return the first three models of Algorithm 1 and the seven features; None where they were not recorded."""
        if not set(PAPER_SEVEN) <= set(train.feature_names):
            return None
        links, _ = select_models(train.right, train.costs, train.models, theta_points=-1.0)
        return links[:PAPER_LINKS], train.of(PAPER_SEVEN)

    def fitted(self, learned: Mapping[Criterion, Any], _chosen: Mapping[Criterion, Any]) -> Part:
        """Store the scaled features once, and each criterion's links."""
        _, features = next(iter(learned.values()))
        scaling = fit_scaling(features)
        arrays = {"minimum": scaling.minimum, "maximum": scaling.maximum, "points": scaling.apply(features)}
        return Part(Facts({criterion: links for criterion, (links, _) in learned.items()}), arrays)

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """All criteria share the neighbours."""
        scaling = Scaling(part.arrays["minimum"], part.arrays["maximum"])
        near = Neighbours(part.arrays["points"])
        return self._made(part.facts, calibration, scaling, near, min(PAPER_K, len(near.points)), PAPER_SEVEN)
