"""What every model of a family said of every photograph, and what each step cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.selection.driver import predict
from jetsel.selection.policy import Prediction
from jetsel.wire import Criterion


@dataclass(frozen=True, eq=False)
class Recording:
    """n photographs, m models cheapest first, c classes, f features.

    logits: (m, n, c) float32. classes: (n,) the true class numbers. features: (n, f) float32, in the table's order.
    costs_ms: model -> mean latency of one photograph.
    """

    models: tuple[str, ...]
    logits: NDArray[np.float32]
    classes: NDArray[np.int64]
    features: NDArray[np.float32]
    costs_ms: Mapping[str, float]

    def right(self, criterion: Criterion) -> NDArray[np.bool_]:
        """Which model was right on which photograph, (n, m): the class is the first, or among the first five.

        Of equal logits the lower class number stands first, as in answers.
        """
        classes = self.classes[None, :, None]
        true = np.take_along_axis(self.logits, classes, axis=2)
        lower = np.arange(self.logits.shape[2]) < classes
        above = ((self.logits > true) | ((self.logits == true) & lower)).sum(axis=2)
        right: NDArray[np.bool_] = np.less(above, 1 if criterion == "top1" else 5)
        return np.transpose(right)

    def confidences(self, criterion: Criterion, temperatures: Mapping[str, float]) -> NDArray[np.float32]:
        """Each model's confidence in each photograph, (n, m) float32; the driver's own formula, all at once."""
        columns = []
        for model, logits in zip(self.models, self.logits, strict=True):
            scaled = logits / np.float32(temperatures[model])
            odds = np.exp(scaled - scaled.max(axis=1, keepdims=True))
            odds /= odds.sum(axis=1, keepdims=True)
            first = 1 if criterion == "top1" else min(5, odds.shape[1])
            columns.append(np.partition(odds, -first)[:, -first:].sum(axis=1))
        return np.stack(columns, axis=1)

    def prediction(self, model: str, photograph: int, criterion: Criterion, temperature: float) -> Prediction:
        """What the model said of one photograph, as the driver would hand it to a policy."""
        return predict(model, self.logits[self.models.index(model), photograph], temperature, criterion)
