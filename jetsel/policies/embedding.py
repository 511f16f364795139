"""The policy that runs the cheapest model and lets the neighbours of its embedding say whether to go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import ModelUnavailableError
from jetsel.policies.kind import Kind, Part, Plan, Table, Tried, Weighing, weighed
from jetsel.policies.policy import Decision, Evidence, Policy, Run, Steps, run_or_fall_back
from jetsel.premodel import Neighbours, Shares, worthiest
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration

KS = (11, 31, 101)  # numbers of neighbours that are tried

Chances = Callable[[NDArray[np.float32]], NDArray[np.float64]]
"""(width,) float32 -> (models,) float64: how likely each model is right."""


@dataclass(frozen=True)
class EmbeddingPolicy:
    """Runs the cheapest model, and lets the neighbours of its embedding say whether and to which model to go on.

    costs: (models,), of running each after the cheapest, whose own is therefore 0, in ms, or in mJ where energy was the
    objective; price: how much chance one of these must buy.
    """

    name: str
    models: tuple[str, ...]
    chances: Chances
    costs: NDArray[np.float64]
    price: float
    features: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[str, ...]:
        """The cheapest always runs."""
        return self.models[:1]

    def __call__(self, photo: Evidence) -> Steps:
        """Run the cheapest, look, perhaps run one more; where one of the two is unavailable, another answers."""
        cheapest, stands_in = self.models[0], photo.fallback or self.models[-1]
        seen, why = yield from run_or_fall_back(cheapest, "its embedding says what to do", stands_in)
        if seen.model != cheapest:
            return Decision(seen, why)
        if seen.embedding is None:
            return Decision(seen, f"{seen.model} gave no embedding to go on from")
        chances = self.chances(seen.embedding)
        best = int(worthiest(chances, self.costs, self.price))
        because = because_of(self.models[best], float(chances[best]))
        if best == 0:
            return Decision(seen, because)
        try:
            (better,) = yield Run((self.models[best],), because)
        except ModelUnavailableError:
            return Decision(seen, f"{self.models[best]} is unavailable; {seen.model} is the best that ran")
        return Decision(better, because)


def because_of(model: str, chance: float) -> str:
    """Return the reason for choosing this model, which is right with this chance."""
    return f"{model} is most worth what it costs: right with a chance of {chance:.2f}"


@dataclass(frozen=True, eq=False)
class _Learned:
    """The embeddings (n, width) float16, who was right (n, m), what models cost (m,), and the prices to try."""

    points: NDArray[np.float16]
    right: NDArray[np.bool_]
    costs: NDArray[np.float64]
    prices: NDArray[np.float64]


class EmbeddingKind(Kind):
    """Learned are the photographs themselves; tried is each number of neighbours at each price."""

    name = "embedding"
    facts = Weighing

    def learn(self, train: Table, _plan: Plan) -> _Learned | None:
        """Keep the embeddings; None where the cheapest model gives none."""
        if train.embeddings is None:
            return None
        return _Learned(train.embeddings, train.right, train.costs, train.prices)

    def tried(self, learned: _Learned, held: Table) -> list[Tried]:
        """One point for each number of neighbours and price."""
        assert held.embeddings is not None
        points = learned.points.astype(np.float32)
        most = min(max(KS), len(points))
        near, _ = Neighbours(points).nearest_many(held.embeddings.astype(np.float32), most)
        found = []
        for k in KS:
            chances = learned.right[near[:, : min(k, most)]].mean(axis=1)
            for price in learned.prices:
                point = weighed(chances, _after(learned.costs), price, held)
                point.ran[:, 0] = True
                found.append(point)
        return found

    def fitted(self, learned: Mapping[Criterion, _Learned], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the embeddings once, and what was chosen for each criterion."""
        weighings = {}
        for criterion, one in learned.items():
            which_k, which_price = divmod(chosen[criterion], len(one.prices))
            weighings[criterion] = Weighing(float(one.prices[which_price]), min(KS[which_k], len(one.points)))
        return Part(weighings, {"points": next(iter(learned.values())).points})

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """All criteria share the neighbours."""
        models, costs = tuple(calibration.model_sha256), _after(calibration.cost_array)
        neighbours = Neighbours(part.arrays["points"].astype(np.float32))
        made: dict[Criterion, Policy] = {}
        for criterion, weighing in part.facts.items():
            shares = Shares(neighbours, calibration.right[criterion], weighing.k)
            made[criterion] = EmbeddingPolicy(self.name, models, shares.of, costs, weighing.price)
        return made


def _after(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each model costs once the cheapest has run, (m,)."""
    return np.where(np.arange(len(costs)) == 0, 0.0, costs)
