"""Everything that is learned for one criterion, learned from some photographs and tried on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel import premodel
from jetsel.calibrate.fit.algorithm1 import select_models
from jetsel.calibrate.goal import Outcomes
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.rungs import PRICES, Fitted, Voices, fit_cascades, judge
from jetsel.calibrate.temperature import fit_temperature
from jetsel.wire import Criterion

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of neighbours: when a first rung is skipped
SKIP_K = 31
EMBEDDING_KS = (11, 31, 101)


@dataclass(frozen=True)
class Plan:
    """What is decided once, before anything is learned. theta_points: of Algorithm 1; k: the chain's neighbours."""

    features: tuple[str, ...]
    k: int
    theta_points: float = 0.5
    features_ms: float = 0.0  # of extracting these features


@dataclass(frozen=True, eq=False)
class Learned:
    """What one set of photographs taught: cascades for every budget, and what weighs chances."""

    train: Recording
    criterion: Criterion
    plan: Plan
    temperatures: Mapping[str, float]
    links: tuple[str, ...]
    cascades: list[Fitted]
    averaged: list[Fitted]
    trees: premodel.Trees | None

    @property
    def columns(self) -> list[int]:
        """The plan's features as columns of a recording."""
        return [self.train.feature_names.index(name) for name in self.plan.features]

    @property
    def prices(self) -> NDArray[np.float64]:
        """What a millisecond, or a millijoule, is worth in shares of right answers, at each price."""
        prices: NDArray[np.float64] = PRICES / costs_of(self.train).max()
        return prices


def learn(
    train: Recording, criterion: Criterion, plan: Plan, temperatures: Mapping[str, float], trees: premodel.Trees | None
) -> Learned:
    """Fit what has a closed set of photographs to be fitted on; the rest is weighed when it is tried."""
    links, _ = select_models(train.right(criterion), costs_of(train), train.models, plan.theta_points)
    alone = fit_cascades(Voices(train, criterion, temperatures, averaged=False))
    together = fit_cascades(Voices(train, criterion, temperatures, averaged=True))
    return Learned(train, criterion, plan, temperatures, links, alone, together, trees)


def fit_temperatures(recording: Recording) -> dict[str, float]:
    """Each model's temperature on these photographs; 1 for one that is always right, of which they tell nothing.

    Such is the model whose answers stand for labels: the temperature of least loss would make it sure of anything.
    """
    return {
        model: 1.0
        if (logits.argmax(axis=1) == recording.classes).all()
        else fit_temperature(logits.astype(np.float32), recording.classes)
        for model, logits in zip(recording.models, recording.logits, strict=True)
    }


def try_cascades(learned: Learned, held: Recording, *, averaged: bool) -> list[Outcomes]:
    """One point for each budget."""
    voices = Voices(held, learned.criterion, learned.temperatures, averaged=averaged)
    return [_of_cascade(fitted, voices, held) for fitted in (learned.averaged if averaged else learned.cascades)]


def try_skipping(learned: Learned, cascade: Fitted, held: Recording) -> list[Outcomes]:
    """One point for each share at which the first rung is skipped."""
    voices = Voices(held, learned.criterion, learned.temperatures, averaged=False)
    chooser_ms = learned.plan.features_ms
    whole = _of_cascade(cascade, voices, held, chooser_ms)
    if len(cascade.rungs) == 1:
        return [whole for _ in SHARES]
    later = _of_cascade(Fitted(cascade.rungs[1:], cascade.thresholds[1:]), voices, held, chooser_ms)
    scaling = premodel.fit_scaling(learned.train.features[:, learned.columns])
    points = scaling.apply(learned.train.features[:, learned.columns])
    k = min(SKIP_K, len(points))
    near = premodel.Shares(points, sure_of(learned, cascade), k)
    share = near.of_many(scaling.apply(held.features[:, learned.columns]))[:, 0]
    return [later.where(share < least, whole) for least in SHARES]


def sure_of(learned: Learned, cascade: Fitted) -> NDArray[np.bool_]:
    """Whether the cascade's first rung was sure of each photograph learned from, (n, 1)."""
    voices = Voices(learned.train, learned.criterion, learned.temperatures, averaged=False)
    confidence, _ = voices.of(cascade.rungs[:1])
    sure: NDArray[np.bool_] = (confidence >= cascade.thresholds[0])[:, None]
    return sure


def try_embedding(learned: Learned, held: Recording) -> list[Outcomes]:
    """One point for each number of neighbours and price; none where the cheapest model gives no embedding."""
    if learned.train.embeddings is None or held.embeddings is None:
        return []
    points = learned.train.embeddings.astype(np.float32)
    right = learned.train.right(learned.criterion)
    most = min(max(EMBEDDING_KS), len(points))
    near, _ = premodel.Neighbours(points).nearest_many(held.embeddings.astype(np.float32), most)

    def after(costs: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.arange(len(costs)) == 0, 0.0, costs)  # the cheapest has run by then

    found = []
    for k in EMBEDDING_KS:
        chances = right[near[:, : min(k, most)]].mean(axis=1)
        for price in learned.prices:
            chosen = premodel.worthiest(chances, after(costs_of(learned.train)), price)
            found.append(_of_models(chosen, held, learned.criterion, lambda costs: costs[0] + after(costs)))
    return found


def try_boosted(learned: Learned, held: Recording) -> list[Outcomes]:
    """One point for each price; none where no trees were grown."""
    if learned.trees is None:
        return []
    costs = costs_of(held)
    chances = np.stack([premodel.chances(learned.trees, x) for x in held.features[:, learned.columns]])
    chooser_ms = learned.plan.features_ms
    return [
        _of_models(premodel.worthiest(chances, costs, price), held, learned.criterion, lambda costs: costs, chooser_ms)
        for price in learned.prices
    ]


Spend = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From what models cost, (m,), in ms or mJ, to what something else costs of the same."""


def _of_cascade(fitted: Fitted, voices: Voices, held: Recording, chooser_ms: float = 0.0) -> Outcomes:
    correct, _ = judge(fitted, voices)
    return _outcomes(correct, held, lambda costs: judge(fitted, voices, costs)[1], chooser_ms)


def _of_models(
    chosen: NDArray[np.int64], held: Recording, criterion: Criterion, spend: Spend, chooser_ms: float = 0.0
) -> Outcomes:
    """One model a photograph, its column in `chosen`; spend: what choosing each comes to, (m,) to (m,)."""
    correct = held.right(criterion)[np.arange(len(chosen)), chosen]
    return _outcomes(correct, held, lambda costs: spend(costs)[chosen], chooser_ms)


def _outcomes(correct: NDArray[np.bool_], held: Recording, spend: Spend, chooser_ms: float) -> Outcomes:
    """spend: what models cost, (m,), to what each photograph does, (n,)."""
    energy_mj = spend(held.costs("energy")) + held.chooser_mj(chooser_ms) if held.knows_energy else None
    return Outcomes(correct, spend(held.costs("time")) + chooser_ms, energy_mj)


def costs_of(recording: Recording) -> NDArray[np.float64]:
    """What each model costs of the objective, (m,), in the recording's order."""
    return recording.costs()
