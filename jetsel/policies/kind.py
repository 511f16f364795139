"""What a policy's file defines beside the policy itself: how it is fitted, stored, checked and made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, PolicyPart
from jetsel.policies.policy import Policy
from jetsel.premodel.cascades import FittedCascade, Outputs, fit_cascades, log_softmax


@dataclass(frozen=True, eq=False)
class Table:
    """Outputs of m models, cheapest first, on n images, as plain arrays.

    logits: one (n, c) array for each model. temperatures: (m,). classes: (n,), the true ones. right: (n, m). costs:
    (m,), ms or mJ as the objective. features: (n, f), in the order of feature_names. embeddings: (n, width) of the
    cheapest model, None if it gives none. groups: (n,), see Recording; None if each image is its own group.
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
        """Return the named features, (n, names) float32. Raises ValueError for an unknown name."""
        return self.features[:, [self.feature_names.index(name) for name in names]]

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Return the table of these rows, with the outputs taken too so that they are not computed again."""
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
        """The answers of each model, and of each pair of models whose logits a cascade averages."""
        return Outputs(self.log_odds, self.classes, self.costs)

    @cached_property
    def cascades(self) -> list[FittedCascade]:
        """The most accurate cascade for each budget, the cheapest first."""
        return fit_cascades(self.outputs)

    @cached_property
    def log_odds(self) -> list[NDArray[np.float32]]:
        """For each model, the logarithms of its probabilities at its temperature, (n, c)."""
        return [log_softmax(*one) for one in zip(self.logits, self.temperatures, strict=True)]


@dataclass(frozen=True, eq=False)
class TriedPoint:
    """An operating point on n held-out images: whether each answer is right (n,), and which models ran (n, m).

    Several points may share one object: the second axis of both arrays is then that of the points.
    """

    correct: NDArray[np.bool_]
    ran: NDArray[np.bool_]

    @classmethod
    def joined(cls, parts: Sequence[TriedPoint], order: NDArray[np.int64]) -> TriedPoint:
        """Return the same point of all folds on all images. order: (n,), rows of the concatenated folds."""
        correct = np.concatenate([part.correct for part in parts])
        return cls(correct[order], np.concatenate([part.ran for part in parts])[order])


class Kind(ABC):
    """One policy as calibration and daemon know it: how to fit, store and make it. The registry holds one of each."""

    name: str

    @abstractmethod
    def learn(self, train: Table) -> Any:
        """Return what is learned from these images, in the policy's own form; None if it cannot be learned."""

    def tried(self, _learned: Any, _held: Table) -> list[TriedPoint]:
        """Return the operating points on other images, in the same number each time; none if the policy has one."""
        return []

    @abstractmethod
    def fitted(self, learned: Any, chosen: Any) -> PolicyPart:
        """Return the part to store. chosen: choices made on held-out images, such as the place of a point."""

    @abstractmethod
    def make(self, part: PolicyPart, calibration: Calibration) -> dict[str, Policy]:
        """Return the policies by name.

        Raises ValueError, TypeError or LookupError if the part does not fit the calibration.
        """


def columns(names: Sequence[str], calibration: Calibration) -> list[int]:
    """Return the places of these models in the calibration's arrays. Raises ValueError for an unknown model."""
    models = list(calibration.identities)
    return [models.index(model) for model in names]
