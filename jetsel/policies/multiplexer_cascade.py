"""The policy that enters a confidence cascade at the rung which a multiplexer names, and climbs on from there.

The multiplexer spares the rungs that would not have been sure; whether the answer is good enough the models still say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.errors import ModelUnavailableError
from jetsel.policies.cascade import Cascade, Rung, check_rungs, fitted_rungs
from jetsel.policies.kind import Kind, Part, Plan, Table, Tried
from jetsel.policies.multiplexing import Multiplexer
from jetsel.policies.policy import Decision, Evidence, Policy, Steps
from jetsel.premodel import worthiest
from jetsel.premodel.cascades import Fitted, judge
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration

EACH = 4  # of the prices of other policies so manieth is tried with every cascade, and 0


class Entered(Struct, frozen=True, forbid_unknown_fields=True):
    """The cascade, and what a millisecond or millijoule of a rung must add to the chance, to be entered at."""

    rungs: tuple[Rung, ...]
    price: Annotated[float, Meta(ge=0)]


def entries(
    chances: NDArray[np.float64], known: Sequence[str], rungs: Sequence[str], costs: NDArray[np.float64], price: float
) -> NDArray[np.int64]:
    """Return the place of the rung to begin with, (...,): of those known the one most worth its cost, else the first.

    chances: (..., N) of the known models. costs: (rungs,).
    """
    places = np.array([place for place, model in enumerate(rungs) if model in known], np.int64)
    if not len(places):
        return np.zeros(chances.shape[:-1], np.int64)
    columns = [known.index(rungs[place]) for place in places]
    return places[worthiest(chances[..., columns], costs[places], price)]


@dataclass(frozen=True, eq=False)
class MultiplexerCascade:
    """Climbs the cascade from the rung that the multiplexer names. costs: (rungs,), ms or mJ."""

    name: str
    multiplexer: Multiplexer
    cascade: Cascade
    costs: NDArray[np.float64]
    price: float
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every rung."""
        return self.cascade.models

    first = models

    def __call__(self, photo: Evidence) -> Steps:
        """Ask, enter, climb; without the multiplexer, or with nothing that runs from there on, from the first rung."""
        mux = self.multiplexer
        chances = yield from mux.ask()
        if chances is None:
            return (yield from self.cascade.climb(0, f"{mux.name} is unavailable: first rung"))
        start = int(entries(chances, mux.models, self.models, self.costs, self.price))
        entered = self.models[start]
        why = mux.words(mux.models.index(entered), chances) if entered in mux.models else "first rung"
        try:
            decision = yield from self.cascade.climb(start, why)
        except ModelUnavailableError as error:
            if start == 0:
                raise
            return (yield from self.cascade.climb(0, f"{error}: first rung"))
        return Decision(decision.seen, f"entered at {entered}; {decision.because}")


@dataclass(frozen=True, eq=False)
class _Learned:
    """The models, a cascade for each budget, and the prices of entering."""

    models: tuple[str, ...]
    cascades: list[Fitted]
    prices: NDArray[np.float64]


class MultiplexerCascadeKind(Kind):
    """Learned are the plain cascades and the prices; tried is each cascade at each price."""

    name = "multiplexer-cascade"
    facts = Entered
    asks_multiplexer = True

    def learn(self, train: Table, _plan: Plan) -> _Learned | None:
        """Take the cascades that `cascade` has; None without a multiplexer."""
        if train.chances is None:
            return None
        return _Learned(train.models, train.cascades, np.array([0.0, *train.prices[::EACH]]))

    def tried(self, learned: _Learned, held: Table) -> list[Tried]:
        """One point for each cascade and price."""
        assert held.chances is not None
        outputs, found = held.outputs(averaged=False), []
        for fitted in learned.cascades:
            names, costs = [held.models[rung] for rung in fitted.rungs], held.costs[list(fitted.rungs)]
            for price in learned.prices:
                entered = entries(held.chances, held.multiplexed, names, costs, price)
                found.append(Tried(*judge(fitted, outputs, entered)))
        return found

    def fitted(self, learned: Mapping[Criterion, _Learned], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the cascade and the price that were chosen."""
        facts = {}
        for criterion, one in learned.items():
            budget, price = divmod(chosen[criterion], len(one.prices))
            facts[criterion] = Entered(fitted_rungs(one.models, one.cascades[budget]), float(one.prices[price]))
        return Part(facts)

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """One policy a criterion; its cascade must be one."""
        mux, made = Multiplexer.of(calibration), dict[Criterion, Policy]()
        for criterion, one in part.facts.items():
            check_rungs(one.rungs, criterion, calibration)
            cascade = Cascade(self.name, one.rungs)
            costs = np.array([calibration.costs[model] for model in cascade.models])
            made[criterion] = MultiplexerCascade(self.name, mux, cascade, costs, one.price)
        return made
