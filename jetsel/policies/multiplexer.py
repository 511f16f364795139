"""The policy that runs the one model which a multiplexer names (Eshratifar and Pedram, Algorithm 2 with argmax)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.policies.kind import Kind, Part, Plan, Table, Tried
from jetsel.policies.multiplexing import Multiplexer
from jetsel.policies.policy import Decision, Evidence, Policy, Steps, run_or_fall_back
from jetsel.premodel import worthiest
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration


class Priced(Struct, frozen=True, forbid_unknown_fields=True):
    """How much chance a millisecond, or a millijoule where that is the objective, must buy; 0 is the paper's argmax."""

    price: Annotated[float, Meta(ge=0)]


@dataclass(frozen=True, eq=False)
class MultiplexerPolicy:
    """Runs the model whose chance is most worth its cost."""

    name: str
    multiplexer: Multiplexer
    price: float
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may choose."""
        return self.multiplexer.models

    first = models

    def __call__(self, photo: Evidence) -> Steps:
        """Ask, run, answer; where either is unavailable, the fallback answers."""
        mux = self.multiplexer
        chances = yield from mux.ask()
        if chances is None:
            return (yield from mux.without(photo))
        which = int(worthiest(chances, mux.costs, self.price))
        because = f"{mux.words(which, chances)}, most worth its cost"
        seen, because = yield from run_or_fall_back(self.models[which], because, photo.fallback or mux.strongest)
        return Decision(seen, because)


class MultiplexerKind(Kind):
    """Learned are the prices; tried is each of them."""

    name = "multiplexer"
    facts = Priced
    asks_multiplexer = True

    def learn(self, train: Table, _plan: Plan) -> NDArray[np.float64] | None:
        """Return 0 and the prices of other policies; None without a multiplexer."""
        return None if train.chances is None else np.array([0.0, *train.prices])

    def tried(self, learned: NDArray[np.float64], held: Table) -> list[Tried]:
        """One point for each price."""
        assert held.chances is not None
        columns, rows = held.multiplexed_columns, np.arange(len(held.classes))
        found = []
        for price in learned:
            which = columns[worthiest(held.chances, held.costs[columns], price)]
            ran = np.zeros_like(held.right)
            ran[rows, which] = True
            found.append(Tried(held.right[rows, which], ran))
        return found

    def fitted(self, learned: Mapping[Criterion, NDArray[np.float64]], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the chosen price."""
        return Part({criterion: Priced(float(prices[chosen[criterion]])) for criterion, prices in learned.items()})

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """One policy a criterion."""
        mux = Multiplexer.of(calibration)
        return {criterion: MultiplexerPolicy(self.name, mux, one.price) for criterion, one in part.facts.items()}
