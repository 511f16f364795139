"""What a policy's file defines beside the policy itself: how it is fitted, stored, checked and made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, Part
from jetsel.policies.policy import Policy
from jetsel.premodel.cascades import Fitted, Outputs, fit_cascades, log_softmax


@dataclass(frozen=True, eq=False)
class Table:
    """What m models, cheapest first, said of n photographs, as plain arrays.

    logits: one (n, c) for each model. temperatures: (m,). classes: (n,) the true ones. right: (n, m). costs: (m,) of
    the objective, ms or mJ. features: (n, f), in the order of feature_names. embeddings: (n, width)
    of the cheapest model, None if it gives none. groups: (n,), see Recording; None if each image is its own.
    """

    models: tuple[str, ...]
    logits: Sequence[NDArray[np.floating]]
    temperatures: Sequence[float]
    classes: NDArray[np.int64]
    right: NDArray[np.bool_]
    costs: NDArray[np.float64]
    features: NDArray[np.float32]
    feature_names: tuple[str, ...]
    embeddings: NDArray[np.float16] | None
    groups: NDArray[np.int64] | None = None

    def of(self, names: Sequence[str]) -> NDArray[np.float32]:
        """The named features, (n, names) float32. Raises ValueError if one is not in the table."""
        return self.features[:, [self.feature_names.index(name) for name in names]]

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Return the same of some images; what was computed of all is not computed again."""
        some = replace(
            self,
            logits=[one[rows] for one in self.logits],
            classes=self.classes[rows],
            right=self.right[rows],
            features=self.features[rows],
            embeddings=None if self.embeddings is None else self.embeddings[rows],
            groups=None if self.groups is None else self.groups[rows],
        )
        some.__dict__["outputs"] = self.outputs.take(rows)
        return some

    @cached_property
    def outputs(self) -> Outputs:
        """What the models say, alone and in pairs."""
        return Outputs(self.log_odds, self.classes, self.costs)

    @cached_property
    def cascades(self) -> list[Fitted]:
        """The most accurate cascade for each budget, the cheapest first."""
        return fit_cascades(self.outputs)

    @cached_property
    def log_odds(self) -> list[NDArray[np.float32]]:
        """What each model says, (n, c), as logarithms of probabilities at its temperature."""
        return [log_softmax(*one) for one in zip(self.logits, self.temperatures, strict=True)]


@dataclass(frozen=True, eq=False)
class TriedPoint:
    """One operating point on photographs that were held out: (n,) whether it is right, (n, m) which models ran."""

    correct: NDArray[np.bool_]
    ran: NDArray[np.bool_]


class Kind(ABC):
    """One policy as calibration and daemon know it; the registry holds one of each."""

    name: str

    @abstractmethod
    def learn(self, train: Table) -> Any:
        """Return what these photographs teach, in a form of the policy's own; None if it cannot be learned."""

    def tried(self, _learned: Any, _held: Table) -> list[TriedPoint]:
        """Return its operating points on other photographs, always the same number; none if there is one alone."""
        return []

    @abstractmethod
    def fitted(self, learned: Any, chosen: Any) -> Part:
        """Return what is stored. chosen: what held-out images decided, such as the place of an operating point."""

    @abstractmethod
    def make(self, part: Part, calibration: Calibration) -> dict[str, Policy]:
        """Return the policy by its name; some kinds have several.

        Raises ValueError, TypeError or LookupError if the part does not fit the calibration.
        """


def columns(names: Sequence[str], calibration: Calibration) -> list[int]:
    """Return where models stand in the calibration's arrays. Raises ValueError that names one that it does not know."""
    models = list(calibration.identities)
    return [models.index(model) for model in names]
