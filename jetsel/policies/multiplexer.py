"""The policy that runs the cheapest model, and then the one that a small network on its answer names.

Eshratifar and Pedram (2020), Algorithm 2 with the argmax: the multiplexer's first layers are the whole cheapest model,
which runs once, and whose own answer is kept if it is the one to give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.calibration import Calibration, Part
from jetsel.policies.kind import ChainPlan, Kind, Table, TriedPoint
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps, run_or_fall_back
from jetsel.premodel import worthiest
from jetsel.premodel.readout import STATISTICS, Readout, fit_readout, inputs_of
from jetsel.wire import Criterion

NAME = "multiplexer"
HELD_OUT = "held_out"
PRICES = (0.0, *np.geomspace(0.003, 1.0, 31))
"""Of the most expensive model's cost, in chance; from 1 on, only the cheapest model ever answers."""


@dataclass(frozen=True)
class CheapestFirst:
    """Runs the cheapest model, and lets what it said decide whether and to which model to go on.

    chances: how likely each model is right, (m,); ValueError if the prediction does not say it. costs: see
    `after_the_cheapest`. price: how much chance a millisecond, or a millijoule if that is the objective, must buy.
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


class Priced(Struct, frozen=True, forbid_unknown_fields=True):
    """How much chance a millisecond, or a millijoule if that is the objective, must buy; 0 is the paper's argmax."""

    price: Annotated[float, Meta(ge=0)]


@dataclass(frozen=True, eq=False)
class Multiplexer:
    """What the network says once the cheapest model ran. held_out: (n, m), the chances of the calibration images.

    Those are of networks that had not seen the image, so that thresholds can be fitted on them.
    """

    readout: Readout
    held_out: NDArray[np.float32]

    @classmethod
    def of(cls, part: Part, criterion: Criterion, calibration: Calibration) -> Multiplexer:
        """Return what a calibration stores; raises ValueError or LookupError if it does not fit the calibration."""
        own = f"{criterion}."
        arrays = {name.removeprefix(own): one for name, one in part.arrays.items() if name.startswith(own)}
        held_out = arrays.pop(HELD_OUT)
        readout = Readout(arrays)
        wanted = (calibration.photographs, len(calibration.identities))
        if held_out.shape != wanted or readout.models != wanted[1]:
            raise ValueError(
                f"probabilities have shape {held_out.shape} for {readout.models} models; expected {wanted}"
            )
        return cls(readout, held_out)

    def chances(self, seen: Prediction) -> NDArray[np.float64]:
        """Return how likely each model is right, (m,). Raises ValueError if the embedding is of another width."""
        inputs, wanted = inputs_of(seen.probabilities, seen.embedding), len(self.readout.weights["mean"])
        if len(inputs) != wanted:
            width = len(inputs) - STATISTICS
            raise ValueError(f"its embedding has {width} numbers, but {wanted - STATISTICS} are expected")
        return self.readout.chances(inputs)


@dataclass(frozen=True, eq=False)
class Learned:
    """The network and its held-out chances, see Multiplexer; costs, prices: of the table that it was fitted on."""

    readout: Readout
    held_out: NDArray[np.float32]
    costs: NDArray[np.float64]
    prices: NDArray[np.float64]


def inputs_in(table: Table) -> NDArray[np.float32]:
    """Return what the network reads of each image of a table, (n, inputs)."""
    return inputs_of(np.exp(table.log_odds[0]), table.embeddings)


class MultiplexerKind(Kind):
    """Learned is the network; tried is each price."""

    name = NAME
    facts = Priced

    def learn(self, train: Table, _plan: ChainPlan) -> Learned | None:
        """Fit the network; None if there is only one model."""
        if len(train.models) < 2:
            return None
        return Learned(
            *fit_readout(inputs_in(train), train.right, train.groups), train.costs, np.array(PRICES) / train.costs.max()
        )

    def tried(self, learned: Learned, held: Table) -> list[TriedPoint]:
        """One point for each price."""
        chances = learned.readout.chances(inputs_in(held))
        found, rows = [], np.arange(len(chances))
        for price in learned.prices:
            which = worthiest(chances, after_the_cheapest(learned.costs), price)
            ran = np.zeros_like(held.right)
            ran[rows, which] = True
            ran[:, 0] = True
            found.append(TriedPoint(held.right[rows, which], ran))
        return found

    def fitted(self, learned: Mapping[Criterion, Learned], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the network of each criterion, and the chosen price."""
        facts: dict[Criterion, Priced] = {}
        arrays: dict[str, NDArray[Any]] = {}
        for criterion, one in learned.items():
            facts[criterion] = Priced(float(one.prices[chosen[criterion]]))
            named = {**one.readout.weights, HELD_OUT: one.held_out}
            arrays |= {f"{criterion}.{name}": array for name, array in named.items()}
        return Part(facts, arrays)

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, dict[str, Policy]]:
        """One policy a criterion."""
        models, costs = tuple(calibration.identities), after_the_cheapest(calibration.cost_array)
        return {
            criterion: {
                self.name: CheapestFirst(
                    self.name, models, Multiplexer.of(part, criterion, calibration).chances, costs, one.price
                )
            }
            for criterion, one in part.facts.items()
        }


def after_the_cheapest(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each model costs once the cheapest has run, (m,)."""
    return np.where(np.arange(len(costs)) == 0, 0.0, costs)
