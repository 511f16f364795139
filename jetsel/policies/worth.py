"""Policies that weigh each model's chance of being right against what it costs: by embedding, or by boosted trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import ModelUnavailableError
from jetsel.policies.policy import Decision, Evidence, Run, Steps
from jetsel.premodel import worthiest

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
        """Run the cheapest, look, perhaps run one more; where that one is unavailable, the cheapest answers."""
        (seen,) = yield Run(self.models[:1], "its embedding says what to do")
        if seen.embedding is None:
            return Decision(seen, f"{seen.model} gave no embedding to go on from")
        chances = self.chances(seen.embedding)
        best = int(worthiest(chances, self.costs, self.price))
        because = _weighed(self.models[best], float(chances[best]))
        if best == 0:
            return Decision(seen, because)
        try:
            (better,) = yield Run((self.models[best],), because)
        except ModelUnavailableError:
            return Decision(seen, f"{self.models[best]} is unavailable; {seen.model} is the best that ran")
        return Decision(better, because)


@dataclass(frozen=True)
class BoostedPolicy:
    """Boosted trees over the photograph's features name the model that is most worth what it costs."""

    name: str
    models: tuple[str, ...]
    chances: Chances
    costs: NDArray[np.float64]
    price: float
    features: tuple[str, ...]

    @property
    def first(self) -> tuple[str, ...]:
        """Any of them may be the one."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose, run, answer; where the chosen one is unavailable, the fallback."""
        assert photo.features is not None
        chances = self.chances(photo.features)
        best = int(worthiest(chances, self.costs, self.price))
        because = _weighed(self.models[best], float(chances[best]))
        try:
            (seen,) = yield Run((self.models[best],), because)
        except ModelUnavailableError:
            if photo.fallback in (None, self.models[best]):
                raise
            because = f"{self.models[best]} is unavailable; {photo.fallback} is the fallback"
            (seen,) = yield Run((photo.fallback,), because)
        return Decision(seen, because)


def _weighed(model: str, chance: float) -> str:
    return f"{model} is most worth what it costs: right with a chance of {chance:.2f}"
