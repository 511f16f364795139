"""What a policy's file defines beside the policy itself: how it is fitted, stored, checked and made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.policies.policy import Policy
from jetsel.premodel.cascades import PRICES, Voices, log_softmax
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration

Spend = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""What models cost, (m,) in ms or mJ -> what each photograph costs, (n,) of the same unit."""


@dataclass(frozen=True)
class Plan:
    """What is decided once, before anything is learned. theta_points: of Algorithm 1; k: the chain's neighbours."""

    features: tuple[str, ...]
    k: int
    theta_points: float = 0.5
    features_ms: float = 0.0  # of extracting these features


@dataclass(frozen=True, eq=False)
class Table:
    """What m models, cheapest first, said of n photographs under one criterion, as plain arrays.

    logits: one (n, c) for each model. temperatures: (m,). classes: (n,) the true ones. right: (n, m). costs: (m,) of
    the objective, mJ where by_energy, else ms. features: (n, f), in the order of feature_names. embeddings: (n, width)
    of the cheapest model, None where it gives none.
    """

    models: tuple[str, ...]
    criterion: Criterion
    logits: Sequence[NDArray[np.floating]]
    temperatures: Sequence[float]
    classes: NDArray[np.int64]
    right: NDArray[np.bool_]
    costs: NDArray[np.float64]
    by_energy: bool
    features: NDArray[np.float32]
    feature_names: tuple[str, ...]
    embeddings: NDArray[np.float16] | None

    def of(self, names: Sequence[str]) -> NDArray[np.float32]:
        """The named features, (n, names) float32. Raises ValueError where one is not in the table."""
        return self.features[:, [self.feature_names.index(name) for name in names]]

    def voices(self, *, averaged: bool) -> Voices:
        """What the models say one after the other, for cascades."""
        return Voices(self._log_odds, self.classes, self.costs, self.criterion, averaged=averaged)

    @property
    def prices(self) -> NDArray[np.float64]:
        """What a millisecond, or a millijoule, is worth in shares of right answers, at each price that is tried."""
        prices: NDArray[np.float64] = PRICES / self.costs.max()
        return prices

    @cached_property
    def _log_odds(self) -> list[NDArray[np.float32]]:
        return [log_softmax(*one) for one in zip(self.logits, self.temperatures, strict=True)]


@dataclass(frozen=True, eq=False)
class Tried:
    """One operating point on photographs that were held out: (n,) whether it is right, and what it costs."""

    correct: NDArray[np.bool_]
    spend: Spend


@dataclass(frozen=True, eq=False)
class Part:
    """What a calibration stores of one policy. facts: its kind's own struct, for JSON. arrays: by name."""

    facts: Any
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class Kind(ABC):
    """One policy as calibration and daemon know it; the registry holds one of each."""

    name: str
    facts: type[Struct]
    reads_features = False  # whether its operating points pay for the plan's features

    @abstractmethod
    def learn(self, train: Table, plan: Plan) -> Any:
        """Return what these photographs teach, in a form of the policy's own; None where it cannot be learned."""

    def tried(self, _learned: Any, _held: Table) -> list[Tried]:
        """Return its operating points on other photographs, always the same number; none where there is one alone."""
        return []

    @abstractmethod
    def fitted(self, learned: Mapping[Criterion, Any], chosen: Mapping[Criterion, Any]) -> Part:
        """Return what is stored. chosen: the place of an operating point among those tried, None where none were."""

    def dtypes(self, _facts: Any) -> dict[str, str]:
        """How each of the part's arrays is stored: name -> numpy's dtype string."""
        return {}

    @abstractmethod
    def fault(self, part: Part, calibration: Calibration) -> str | None:
        """Return what makes the part unusable in this calibration, or None."""

    @abstractmethod
    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """Return the policy for each criterion that it was fitted for."""


class Weighing(Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's chance of being right is weighed against its time, or its energy: one of the two prices is None.

    price_per_ms, price_per_mj: how much chance a millisecond, or a millijoule, must buy. k: neighbours asked, where
    chances are shares of neighbours.
    """

    price_per_ms: Annotated[float, Meta(ge=0)] | None = None
    k: Annotated[int, Meta(ge=1)] | None = None
    price_per_mj: Annotated[float, Meta(ge=0)] | None = None

    @classmethod
    def of(cls, price: float, k: int | None = None, *, by_energy: bool) -> Weighing:
        """Return one with this price of the objective."""
        return cls(price_per_mj=float(price), k=k) if by_energy else cls(price_per_ms=float(price), k=k)

    @property
    def price(self) -> float:
        """What one of the calibration's `costs` must buy."""
        return next((price for price in (self.price_per_ms, self.price_per_mj) if price is not None), 0.0)

    def fault(self, objective: str) -> str | None:
        """Return what is wrong with it where this is saved, time or energy; None where nothing is."""
        priced = [self.price_per_ms is not None, self.price_per_mj is not None]
        by_energy = objective == "energy"
        return None if priced == [not by_energy, by_energy] else f"a weighing has no price, or not one of {objective}"


def unknown_models(named: Sequence[str], calibration: Calibration) -> str | None:
    """Return a sentence that names those models that the calibration does not know; None where it knows them all."""
    unknown = set(named) - set(calibration.model_sha256)
    return f"it names {', '.join(sorted(unknown))}, which the calibration does not know" if unknown else None


def points_fault(
    minimum: NDArray[np.float32], maximum: NDArray[np.float32], points: NDArray[np.float32], n: int, f: int
) -> str | None:
    """Return what is wrong with n photographs' f scaled features and their scale; None where nothing is."""
    if not minimum.shape == maximum.shape == (f,):
        return f"minimum and maximum must be ({f},)"
    if points.shape != (n, f):
        return f"points must be ({n}, {f}), not {points.shape}"
    if not all(np.isfinite(array).all() for array in (minimum, maximum, points)):
        return "an array holds a value that is not finite"
    if not (minimum <= maximum).all():
        return "a minimum is above its maximum"
    if points.min() < 0 or points.max() > 1:
        return "its points must be scaled: each from 0 to 1, since minimum and maximum are their own"
    return None
