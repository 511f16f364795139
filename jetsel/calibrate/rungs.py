"""Fits a cascade: which models are its rungs, and from which confidence each one's answer is taken."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUANTILES = np.linspace(0.02, 0.98, 33)  # of a model's confidences: the thresholds that are tried
PRICES = np.geomspace(0.0005, 0.3, 16)  # of the whole range of costs, in shares of right answers
PASSES = 3


@dataclass(frozen=True)
class Front:
    """One cascade and what it gives on the photographs it was fitted on: rungs are columns, the last threshold 0."""

    rungs: tuple[int, ...]
    thresholds: tuple[float, ...]
    accuracy: float
    cost_ms: float


def judge(
    rungs: tuple[int, ...],
    thresholds: tuple[float, ...],
    confidences: NDArray[np.float32],
    right: NDArray[np.bool_],
    costs_ms: NDArray[np.float64],
) -> tuple[float, float]:
    """Return the accuracy and the mean cost in ms of a cascade; confidences and right are (n, m), costs_ms (m,)."""
    n = len(right)
    waiting = np.ones(n, bool)
    correct = 0
    cost = 0.0
    for rung, threshold in zip(rungs, (*thresholds[: len(rungs) - 1], 0.0), strict=True):
        cost += waiting.sum() * float(costs_ms[rung])
        taken = waiting & (confidences[:, rung] >= threshold)
        correct += int(right[taken, rung].sum())
        waiting &= ~taken
    return correct / n, cost / n


def fit_cascades(
    confidences: NDArray[np.float32], right: NDArray[np.bool_], costs_ms: NDArray[np.float64]
) -> list[Front]:
    """Return the cascades that no other beats in both accuracy and cost, cheapest first.

    Every choice of one to four rungs is tried at every price of time; thresholds by coordinate ascent over quantiles.
    confidences, right: (n, m), columns cheapest first; costs_ms: (m,).
    """
    m = right.shape[1]
    grid = np.asarray(np.quantile(confidences, QUANTILES, axis=0), np.float64)  # (quantiles, m)
    found: list[Front] = []
    for length in range(1, min(m, 4) + 1):
        for rungs in itertools.combinations(range(m), length):
            for price in PRICES / costs_ms.max():
                thresholds = _climb(rungs, grid, confidences, right, costs_ms, float(price))
                accuracy, cost = judge(rungs, thresholds, confidences, right, costs_ms)
                found.append(Front(rungs, (*thresholds, 0.0), accuracy, cost))
    return _undominated(found)


def _climb(
    rungs: tuple[int, ...],
    grid: NDArray[np.float64],
    confidences: NDArray[np.float32],
    right: NDArray[np.bool_],
    costs_ms: NDArray[np.float64],
    price: float,
) -> tuple[float, ...]:
    """Better one threshold at a time until a pass changes nothing: most right answers at this price of a ms."""
    thresholds = [float(grid[len(grid) // 2, rung]) for rung in rungs[:-1]]

    def value(candidate: list[float]) -> float:
        accuracy, cost = judge(rungs, tuple(candidate), confidences, right, costs_ms)
        return accuracy - price * cost

    for _ in range(PASSES):
        before = list(thresholds)
        for place, rung in enumerate(rungs[:-1]):
            tried = [[*thresholds[:place], float(t), *thresholds[place + 1 :]] for t in grid[:, rung]]
            thresholds = max([thresholds, *tried], key=value)
        if thresholds == before:
            break
    return tuple(thresholds)


def _undominated(found: list[Front]) -> list[Front]:
    front: list[Front] = []
    for candidate in sorted(found, key=lambda c: (c.cost_ms, -c.accuracy)):
        if not front or candidate.accuracy > front[-1].accuracy:
            front.append(candidate)
    return front
