"""The policy that averages all models which a multiplexer weighs enough (Eshratifar and Pedram, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.errors import ModelUnavailableError
from jetsel.policies.kind import Kind, Part, Plan, Table, Tried
from jetsel.policies.multiplexing import Multiplexer
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps, confidence_of
from jetsel.premodel import is_right
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration

THRESHOLDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""T, those that are tried: weights of a softmax rarely exceed 0.5, and of a sigmoid often do."""


class Threshold(Struct, frozen=True, forbid_unknown_fields=True):
    """T of Algorithm 2: what a model's weight must exceed."""

    weight: Annotated[float, Meta(ge=0, le=1)]


def selected(chances: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return S of Algorithm 2, (..., N): the models of larger weight, that of the largest where there are none."""
    best = chances >= chances.max(axis=-1, keepdims=True)
    best &= best.cumsum(axis=-1) == 1  # of equals the first
    above = chances > threshold
    return np.where(above.any(axis=-1, keepdims=True), above, best)


@dataclass(frozen=True, eq=False)
class MultiplexerEnsemble:
    """The answer is the mean of the probabilities of all that are selected, as in the paper; the cheapest is first."""

    name: str
    multiplexer: Multiplexer
    threshold: float
    criterion: Criterion
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may choose."""
        return self.multiplexer.models

    first = models

    def __call__(self, photo: Evidence) -> Steps:
        """Ask, run, average; one that is unavailable is left out, and where all are the fallback answers."""
        mux = self.multiplexer
        chances = yield from mux.ask()
        if chances is None:
            return (yield from mux.without(photo))
        places = np.flatnonzero(selected(chances, self.threshold))
        predictions: list[Prediction] = []
        for which in places[np.argsort(mux.costs[places], kind="stable")]:
            try:
                predictions += yield Run((self.models[which],), mux.words(int(which), chances))
            except ModelUnavailableError:  # noqa: PERF203  # a run takes longer
                continue
        if not predictions:
            model = photo.fallback or mux.strongest
            because = f"what {mux.name} names is unavailable; {model} is the fallback"
            (seen,) = yield Run((model,), because)
            return Decision(seen, because)
        names = " and ".join(prediction.model for prediction in predictions)
        above = f"{'' if chances.max() > self.threshold else 'most, and none '}above {self.threshold:.2f}"
        return Decision(self._mean(predictions), f"{mux.name} weighs {names} {above}")

    def _mean(self, predictions: list[Prediction]) -> Prediction:
        """Return the arithmetic mean, by the name of the last, the most expensive of them."""
        last = predictions[-1]
        if len(predictions) == 1:
            return last
        mean = np.mean([prediction.probabilities for prediction in predictions], axis=0)
        return Prediction(last.model, mean, confidence_of(mean, self.criterion), last.embedding)


class MultiplexerEnsembleKind(Kind):
    """Nothing is learned but which threshold; tried is each of them."""

    name = "multiplexer-ensemble"
    facts = Threshold
    asks_multiplexer = True

    def learn(self, train: Table, _plan: Plan) -> tuple[float, ...] | None:
        """Return the thresholds; None without a multiplexer."""
        return None if train.chances is None else THRESHOLDS

    def tried(self, learned: tuple[float, ...], held: Table) -> list[Tried]:
        """One point for each threshold."""
        assert held.chances is not None
        columns = held.multiplexed_columns
        odds = [np.exp(held.log_odds[column]) for column in columns]
        found = []
        for threshold in learned:
            chosen = selected(held.chances, threshold)
            total = np.sum([mask[:, None] * one for mask, one in zip(chosen.T, odds, strict=True)], axis=0)
            ran = np.zeros_like(held.right)
            ran[:, columns] = chosen
            found.append(Tried(is_right(total, held.classes, held.criterion), ran))
        return found

    def fitted(self, learned: Mapping[Criterion, tuple[float, ...]], chosen: Mapping[Criterion, Any]) -> Part:
        """Store the chosen threshold."""
        return Part({criterion: Threshold(tried[chosen[criterion]]) for criterion, tried in learned.items()})

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """One policy a criterion."""
        mux = Multiplexer.of(calibration)
        return {
            criterion: MultiplexerEnsemble(self.name, mux, one.weight, criterion)
            for criterion, one in part.facts.items()
        }
