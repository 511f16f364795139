"""How a policy is fitted to recorded images, stored in a calibration, and made from it again."""

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
    """Recorded outputs of m models, cheapest first, on n images, as plain arrays to fit and test policies.

    logits: one (n, classes) array for each model. temperatures: (m,), divisors of the logits. classes: (n,), the true
    ones. right: (n, m), whether each model is right. costs: (m,), ms, or mJ if energy is the objective. features: (n,
    f), in the order of feature_names. embeddings: (n, width) of the cheapest model, None if it gives none. groups:
    (n,), near-duplicates share a number; None if there are none.
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

    def columns_of(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Return the named features, (n, names) float32. Raises ValueError for an unknown name."""
        return self.features[:, [self.feature_names.index(name) for name in names]]

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Return the table of these images, given by row, with its `outputs`, so that they are not computed again."""
        subset = replace(
            self,
            logits=[model_logits[rows] for model_logits in self.logits],
            classes=self.classes[rows],
            right=self.right[rows],
            features=self.features[rows],
            embeddings=None if self.embeddings is None else self.embeddings[rows],
            groups=None if self.groups is None else self.groups[rows],
        )
        subset.__dict__["outputs"] = self.outputs.take(rows)
        return subset

    @cached_property
    def outputs(self) -> Outputs:
        """The answers of each model, and of each pair of models whose logits a cascade averages."""
        return Outputs(self.log_odds, self.classes, self.costs)

    @cached_property
    def cascades(self) -> list[FittedCascade]:
        """The most accurate cascade for each limit of the mean cost, the cheapest first."""
        return fit_cascades(self.outputs)

    @cached_property
    def log_odds(self) -> list[NDArray[np.float32]]:
        """For each model, the logarithms of its probabilities at its temperature, (n, classes)."""
        return [log_softmax(*scaled) for scaled in zip(self.logits, self.temperatures, strict=True)]


@dataclass(frozen=True, eq=False)
class TriedPoint:
    """Results of an operating point on n held-out images. correct: (n,), of its answers. ran: (n, m), of each model.

    If p operating points share one object, `correct` is (n, p) and `ran` (n, p, m).
    """

    correct: NDArray[np.bool_]
    ran: NDArray[np.bool_]

    @classmethod
    def joined(cls, parts: Sequence[TriedPoint], order: NDArray[np.int64]) -> TriedPoint:
        """Return one point's results of all folds as one. order: (n,), row of each image in the concatenated folds."""
        correct = np.concatenate([part.correct for part in parts])
        return cls(correct[order], np.concatenate([part.ran for part in parts])[order])


class Kind(ABC):
    """How to fit, store and make one kind of policy, such as `cascade`. The registry holds an instance of each."""

    name: str

    @abstractmethod
    def learn(self, train: Table) -> Any:
        """Return what the policy learns from these images, in its own type; None if it needs more models."""

    def try_points(self, _learned: Any, _held: Table) -> list[TriedPoint]:
        """Return the results of each operating point on other images, always as many; [] if the policy has only one."""
        return []

    @abstractmethod
    def to_part(self, learned: Any, chosen: Any) -> PolicyPart:
        """Return what a calibration stores. chosen: what held-out images decided, such as the index of a point."""

    @abstractmethod
    def make(self, part: PolicyPart, calibration: Calibration) -> dict[str, Policy]:
        """Return the policies of a stored part by name. Raises ValueError, TypeError or LookupError for a misfit."""


def model_columns(names: Sequence[str], calibration: Calibration) -> list[int]:
    """Return the index of each of these models in the calibration's arrays. Raises ValueError for an unknown model."""
    models = list(calibration.identities)
    return [models.index(model) for model in names]
