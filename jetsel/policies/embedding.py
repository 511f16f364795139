"""The policy that runs the cheapest model and lets the neighbours of its embedding say whether to go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.calibration import Calibration, Part
from jetsel.policies.kind import ChainPlan, Kind, Table, TriedPoint
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps, run_or_fall_back
from jetsel.premodel import Neighbours, shares, worthiest
from jetsel.wire import Criterion

KS = (11, 31, 101)  # numbers of neighbours that are tried


class Weighing(Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's chance of being right is weighed against what it costs.

    price: how much chance a millisecond, or a millijoule if the calibration's objective is energy, must buy.
    k: neighbours whose share is the chance.
    """

    price: Annotated[float, Meta(ge=0)]
    k: Annotated[int, Meta(ge=1)] = 1


@dataclass(frozen=True)
class EmbeddingPolicy:
    """Runs the cheapest model, and lets what it said decide whether and to which model to go on.

    chances: how likely each model is right, (models,) float64; ValueError if the prediction does not say it. costs:
    (models,), in ms, or in mJ if energy was the objective, of running each after the cheapest, whose own is
    therefore 0. price: how much chance one of these must buy.
    """

    name: str
    models: tuple[str, ...]
    chances: Callable[[Prediction], NDArray[np.float64]]
    costs: NDArray[np.float64]
    price: float
    features: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[str, ...]:
        """The cheapest always runs."""
        return self.models[:1]

    def __call__(self, photo: Evidence) -> Steps:
        """Run the cheapest, look, perhaps run one more; if one of the two is unavailable, another answers."""
        cheapest, stands_in = self.models[0], photo.fallback or self.models[-1]
        seen, why = yield from run_or_fall_back(cheapest, "its answer decides what runs next", stands_in)
        if seen.model != cheapest:
            return Decision(seen, why)
        try:
            chances = self.chances(seen)
        except ValueError as fault:
            return Decision(seen, f"{seen.model} returns no usable embedding: {fault}")
        which = int(worthiest(chances, self.costs, self.price))
        best = self.models[which]
        because = f"{best} is the best trade of accuracy and cost: right with a probability of {chances[which]:.2f}"
        if best == cheapest:
            return Decision(seen, because)
        try:
            (better,) = yield Run((best,), because)
        except ModelUnavailableError:
            return Decision(seen, f"{best} is unavailable; {seen.model} is the best that ran")
        return Decision(better, because)


class EmbeddingKind(Kind):
    """Learned are the photographs themselves; tried is each number of neighbours at each price."""

    name = "embedding"
    facts = Weighing

    def learn(self, train: Table, _plan: ChainPlan) -> Table | None:
        """Keep the photographs; None if the cheapest model gives no embeddings."""
        return None if train.embeddings is None else train

    def tried(self, learned: Table, held: Table) -> list[TriedPoint]:
        """One point for each number of neighbours and price."""
        assert learned.embeddings is not None
        assert held.embeddings is not None
        points = learned.embeddings.astype(np.float32)
        most = min(max(KS), len(points))
        near, _ = Neighbours(points).nearest_many(held.embeddings.astype(np.float32), most)
        found = []
        for k in KS:
            chances = learned.right[near[:, : min(k, most)]].mean(axis=1)
            for price in learned.prices:
                place = np.arange(len(chances)), worthiest(chances, after_the_cheapest(learned.costs), price)
                ran = np.zeros_like(held.right)
                ran[place] = True
                ran[:, 0] = True
                found.append(TriedPoint(held.right[place], ran))
        return found

    def fitted(self, learned: Mapping[Criterion, Table], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the embeddings once, and what was chosen for each criterion."""
        weighings = {}
        for criterion, one in learned.items():
            which_k, which_price = divmod(chosen[criterion], len(one.prices))
            weighings[criterion] = Weighing(float(one.prices[which_price]), min(KS[which_k], len(one.right)))
        embeddings = next(iter(learned.values())).embeddings
        assert embeddings is not None
        return Part(weighings, {"points": embeddings})

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, dict[str, Policy]]:
        """All criteria share the neighbours."""
        models, costs = tuple(calibration.identities), after_the_cheapest(calibration.cost_array)
        neighbours = Neighbours(part.arrays["points"].astype(np.float32))
        made: dict[Criterion, dict[str, Policy]] = {}
        for criterion, weighing in part.facts.items():
            right, points = calibration.right[criterion], len(neighbours.points)
            if points != len(right) or weighing.k > points:
                raise ValueError(f"{points} points, {len(right)} rows and k {weighing.k} do not fit one another")
            chances = partial(_shares, neighbours, right, weighing.k)
            made[criterion] = {self.name: EmbeddingPolicy(self.name, models, chances, costs, weighing.price)}
        return made


def _shares(neighbours: Neighbours, right: NDArray[np.bool_], k: int, seen: Prediction) -> NDArray[np.float64]:
    """How often each model was right on the neighbours of an embedding, (models,). Raises ValueError without one."""
    if seen.embedding is None:
        raise ValueError("it gave no embedding")
    return shares(neighbours, right, k, seen.embedding)


def after_the_cheapest(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each model costs once the cheapest has run, (m,)."""
    return np.where(np.arange(len(costs)) == 0, 0.0, costs)
