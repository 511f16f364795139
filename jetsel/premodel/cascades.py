"""Fits cascades: which one or two models run, and which confidence of the first makes the second unnecessary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUANTILES = np.linspace(0.01, 0.99, 99)  # of the first model's confidences: the thresholds that are tried
BUDGETS = np.geomspace(0.05, 1.2, 80)
"""Limits of a cascade's mean time or energy, as shares of the most expensive model's, in steps of 4 %."""


def is_right(logits: NDArray[np.floating], classes: NDArray[np.int64], top: int = 1) -> NDArray[np.bool_]:
    """Return, for each image, whether its class is among the `top` highest of its logits: (n,). logits: (n, c).

    classes: (n,), the true ones. Of equal logits the lower class number ranks first, as in answers.
    """
    column = classes[:, None]
    true = np.take_along_axis(logits, column, axis=1)
    lower = np.arange(logits.shape[1]) < column
    above = ((logits > true) | ((logits == true) & lower)).sum(axis=1)
    right: NDArray[np.bool_] = np.less(above, top)
    return right


class Outputs:
    """Outputs of m models on n images, alone and combined: cascades average the log-probabilities of those that ran."""

    def __init__(
        self, log_probabilities: Sequence[NDArray[np.float32]], classes: NDArray[np.int64], costs: NDArray[np.float64]
    ) -> None:
        """Store log_probabilities, each model's log_softmax at its temperature, (n, c), and the true classes, (n,).

        costs: (m,), of each model, in ms, or in mJ if energy is the objective; in rising order.
        """
        self.costs = costs
        self.classes = classes
        self._log_probabilities = log_probabilities
        self._by_models: dict[tuple[int, ...], tuple[NDArray[np.float32], NDArray[np.bool_]]] = {}

    def after(self, models: tuple[int, ...]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return, both (n,), the confidence of the answer after these models have run, and whether it is right."""
        if models not in self._by_models:
            logs = self._log_probabilities[models[0]]
            if len(models) > 1:
                logs = log_softmax(np.mean([self._log_probabilities[column] for column in models], axis=0), 1.0)
            self._by_models[models] = np.exp(logs).max(axis=1), is_right(logs, self.classes)
        return self._by_models[models]

    def take(self, rows: NDArray[np.int64]) -> Outputs:
        """Return the outputs on the images of these rows."""
        return _SelectedOutputs(self, rows)


class _SelectedOutputs(Outputs):
    """Outputs on some images, selected from those on all images, so that each combination is computed once."""

    def __init__(self, whole: Outputs, rows: NDArray[np.int64]) -> None:
        super().__init__((), whole.classes[rows], whole.costs)
        self._whole, self._rows = whole, rows

    def after(self, models: tuple[int, ...]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return the confidence of these models' answer to each selected image, and whether it is right."""
        confidence, right = self._whole.after(models)
        return confidence[self._rows], right[self._rows]


@dataclass(frozen=True)
class FittedCascade:
    """A cascade: models (rungs) run in this order until the answer's confidence reaches the rung's threshold."""

    rungs: tuple[int, ...]  # indices of models, cheapest first
    thresholds: tuple[float, ...]  # one for each rung; the last is 0


def replay_cascade(cascade: FittedCascade, outputs: Outputs) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether the cascade's answer to each image is right, (n,), and which models ran, (n, m)."""
    waiting = np.ones(len(outputs.classes), bool)
    correct, ran = np.zeros(len(waiting), bool), np.zeros((len(waiting), len(outputs.costs)), bool)
    for step, threshold in enumerate(cascade.thresholds):
        confidence, right = outputs.after(cascade.rungs[: step + 1])
        ran[:, cascade.rungs[step]] = waiting
        answered = waiting & (confidence >= threshold)
        correct |= answered & right
        waiting = waiting & ~answered
    return correct, ran


def fit_cascades(outputs: Outputs, budgets: Sequence[float] | NDArray[np.float64] = BUDGETS) -> list[FittedCascade]:
    """Return, for each budget, the most accurate cascade whose mean cost is within it; the cheapest if none is.

    budgets: shares of the most expensive model's cost.
    """
    # In order of cost, `best` is the highest accuracy so far, and `leading` the index of the cascade that has it.
    tried = tried_cascades(outputs)
    order = np.lexsort((-tried.accuracy, tried.cost))
    best = np.maximum.accumulate(tried.accuracy[order])
    is_new = np.diff(best, prepend=-1.0) > 0
    leading = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    within = np.searchsorted(tried.cost[order], np.asarray(budgets) * outputs.costs.max(), side="right") - 1
    return [tried.cascades[order[leading[max(0, index)]]] for index in within.tolist()]


@dataclass(frozen=True, eq=False)
class TriedCascades:
    """All cascades that `fit_cascades` chooses from. accuracy, cost: (cascades,), means over the images."""

    cascades: list[FittedCascade]
    accuracy: NDArray[np.float64]
    cost: NDArray[np.float64]


def tried_cascades(outputs: Outputs) -> TriedCascades:
    """Evaluate each model alone, and each pair of models at 99 thresholds.

    Longer cascades are left out: on both shipped families, cascades of three and four models fitted on 1,247 to 8,000
    images were at most 0.2 points more accurate on other images at equal time, and up to 1.6 points less accurate.
    """
    cascades, accuracy, cost = [], [], []
    for first, first_cost in enumerate(outputs.costs):
        confidence, right = outputs.after((first,))
        cascades.append(FittedCascade((first,), (0.0,)))
        accuracy.append(np.array([right.mean()]))
        cost.append(np.array([first_cost]))
        order = np.argsort(-confidence)
        thresholds = np.unique(np.quantile(confidence, QUANTILES))
        stops = np.searchsorted(-confidence[order], -thresholds, side="right")  # images that only the first runs on
        for last in range(first + 1, len(outputs.costs)):
            _, both = outputs.after((first, last))
            # By the number of images, the most confident first, that stop at the first model: right answers gained.
            gained = np.concatenate([[0], np.cumsum(right[order].astype(int) - both[order])])
            cascades += [FittedCascade((first, last), (threshold, 0.0)) for threshold in thresholds.tolist()]
            accuracy.append((both.sum() + gained[stops]) / len(right))
            cost.append(first_cost + outputs.costs[last] * (1 - stops / len(right)))
    return TriedCascades(cascades, np.concatenate(accuracy), np.concatenate(cost))


def log_softmax(logits: NDArray[np.floating], temperature: float) -> NDArray[np.float32]:
    """Return the logarithms of the probabilities for logits (n, c) at a temperature: (n, c)."""
    scaled: NDArray[np.float32] = logits.astype(np.float32) / np.float32(temperature)
    scaled -= scaled.max(axis=1, keepdims=True)
    scaled -= np.log(np.exp(scaled).sum(axis=1, keepdims=True))
    return scaled
