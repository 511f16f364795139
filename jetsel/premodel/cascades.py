"""Fits cascades: which models are the rungs, and from which confidence the answer of those that ran is taken."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel.algorithm1 import is_right

QUANTILES = np.linspace(0.02, 0.98, 33)  # of the confidences at a rung: the thresholds that are tried
PRICES = np.geomspace(0.003, 0.3, 24)  # of the most expensive model's time or energy, in shares of right answers
BUDGETS = np.geomspace(0.04, 1.3, 36)  # mean times or energies wanted, as shares of the most expensive model's
PASSES = 3
FEW_MODELS = 8  # up to this number, cascades have four rungs; of more, three: the combinations grow too fast


class Outputs:
    """What the models say that have run: the last of them alone, or all averaged as AveragedCascade does."""

    def __init__(
        self,
        log_odds: Sequence[NDArray[np.float32]],
        classes: NDArray[np.int64],
        costs: NDArray[np.float64],
        *,
        averaged: bool,
    ) -> None:
        """Keep each model's log_softmax at its temperature, (n, c), the true classes (n,) and the costs (m,)."""
        self.costs = costs  # ms, or mJ if energy is the objective
        self._averaged = averaged
        self.classes = classes
        self._logs = log_odds
        self._heard: dict[tuple[int, ...], tuple[NDArray[np.float32], NDArray[np.bool_]]] = {}

    def of(self, ran: tuple[int, ...]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return the confidence and whether it is right, both (n,), once these columns have run, cheapest first."""
        key = tuple(sorted(ran)) if self._averaged else ran[-1:]
        if key not in self._heard:
            logs = self._logs[key[0]]
            if len(key) > 1:
                logs = log_softmax(np.mean([self._logs[column] for column in key], axis=0), 1.0)
            self._heard[key] = np.exp(logs).max(axis=1), is_right(logs, self.classes)
        return self._heard[key]


@dataclass(frozen=True)
class Fitted:
    """One cascade: rungs are columns, cheapest first, and the last threshold is 0."""

    rungs: tuple[int, ...]
    thresholds: tuple[float, ...]


def judge(fitted: Fitted, outputs: Outputs) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each photograph whether the cascade is right, (n,), and which models run, (n, m)."""
    waiting = np.ones(len(outputs.classes), bool)
    correct, ran = np.zeros(len(waiting), bool), np.zeros((len(waiting), len(outputs.costs)), bool)
    for place, threshold in enumerate(fitted.thresholds):
        confidence, right = outputs.of(fitted.rungs[: place + 1])
        ran[:, fitted.rungs[place]] = waiting
        taken = waiting & (confidence >= threshold)
        correct |= taken & right
        waiting = waiting & ~taken
    return correct, ran


def fit_cascades(outputs: Outputs, budgets: Sequence[float] | NDArray[np.float64] = BUDGETS) -> list[Fitted]:
    """Return, for each budget, the most accurate cascade whose mean cost keeps it; the cheapest if none does.

    budgets: shares of what the most expensive model costs. Every choice of one to four rungs is fitted at every price,
    thresholds by coordinate ascent over quantiles, each step the best there is. Prices find only what no mixture of two
    others beats, which leaves gaps: so each of them is tried with other last thresholds too.
    """
    tried = tried_cascades(outputs, 4 if len(outputs.costs) <= FEW_MODELS else 3)
    judged = [judge(fitted, outputs) for fitted in tried]
    accuracy = np.array([correct.mean() for correct, _ in judged])
    mean_cost = np.array([ran.mean(axis=0) @ outputs.costs for _, ran in judged])
    found = []
    for budget in np.asarray(budgets) * outputs.costs.max():
        within = mean_cost <= budget
        best = np.lexsort((mean_cost, -np.where(within, accuracy, -1.0)))[0] if within.any() else mean_cost.argmin()
        found.append(tried[int(best)])
    return found


def tried_cascades(outputs: Outputs, most_rungs: int) -> list[Fitted]:
    """Return every cascade that `fit_cascades` chooses from, with up to this number of rungs; none twice."""
    models, prices = range(len(outputs.costs)), PRICES / outputs.costs.max()
    choices = [_Rungs(rungs, outputs) for n in range(1, most_rungs + 1) for rungs in itertools.combinations(models, n)]
    climbed = {one.thresholds_at(float(price)): one for one in choices for price in prices}
    return list(dict.fromkeys([*climbed, *(near for fitted, one in climbed.items() for near in one.near(fitted))]))


class _Rungs:
    """One choice of rungs over the photographs to fit on, prepared for many prices."""

    def __init__(self, rungs: tuple[int, ...], outputs: Outputs) -> None:
        self._rungs = rungs
        self._costs = [float(outputs.costs[rung]) for rung in rungs]
        heard = [outputs.of(rungs[: place + 1]) for place in range(len(rungs))]
        self._right = [right.astype(np.float64) for _, right in heard]
        self._confidence = [confidence for confidence, _ in heard[:-1]]
        self._order = [np.argsort(-confidence) for confidence in self._confidence]
        self._grid = [np.quantile(confidence, QUANTILES).astype(np.float64) for confidence in self._confidence]
        self._accepted = [  # how many photographs each threshold of the grid lets go
            (confidence[None] >= grid[:, None]).sum(axis=1)
            for confidence, grid in zip(self._confidence, self._grid, strict=True)
        ]

    def thresholds_at(self, price: float) -> Fitted:
        """Better one threshold at a time until a pass changes nothing."""
        thresholds = [float(grid[len(grid) // 2]) for grid in self._grid]
        for _ in range(PASSES):
            before = list(thresholds)
            for place in reversed(range(len(thresholds))):
                thresholds[place] = self._best(place, thresholds, price)
            if thresholds == before:
                break
        return Fitted(self._rungs, (*thresholds, 0.0))

    def near(self, fitted: Fitted) -> list[Fitted]:
        """The same cascade with every second threshold of the grid before its last rung."""
        if len(self._rungs) == 1:
            return []
        before = fitted.thresholds[:-2]
        return [Fitted(self._rungs, (*before, float(threshold), 0.0)) for threshold in self._grid[-1][::2]]

    def _best(self, place: int, thresholds: list[float], price: float) -> float:
        """The threshold of this rung that is best while the others stand.

        What stopping gains over going on is added up photograph by photograph, from the surest downwards.
        """
        reached = np.ones(len(self._right[0]), bool)
        for earlier in range(place):
            reached &= self._confidence[earlier] < thresholds[earlier]
        gain = (self._right[place] - self._beyond(place + 1, thresholds, price)) * reached
        so_far = np.concatenate([[0.0], np.cumsum(gain[self._order[place]])])
        return float(self._grid[place][int(so_far[self._accepted[place]].argmax())])

    def _beyond(self, place: int, thresholds: list[float], price: float) -> NDArray[np.float64]:
        """What a photograph is worth that comes to this rung: right or not, less the price of what runs from here."""
        last = len(self._rungs) - 1
        value: NDArray[np.float64] = self._right[last] - price * self._costs[last]
        for rung in reversed(range(place, last)):
            taken = self._confidence[rung] >= thresholds[rung]
            value = np.where(taken, self._right[rung], value) - price * self._costs[rung]
        return value


def log_softmax(logits: NDArray[np.floating], temperature: float) -> NDArray[np.float32]:
    """The logarithms of the probabilities that logits (n, c) give at a temperature: (n, c)."""
    scaled: NDArray[np.float32] = logits.astype(np.float32) / np.float32(temperature)
    scaled -= scaled.max(axis=1, keepdims=True)
    scaled -= np.log(np.exp(scaled).sum(axis=1, keepdims=True))
    return scaled
