"""MDInference's selection of a model by its three stages (section IV-D), over arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Models(NamedTuple):
    """What is known of m models: (m,) float64 each."""

    accuracy: Floats
    mean_ms: Floats
    deviation_ms: Floats


def base(budgets_ms: Floats, models: Models) -> Indices:
    """Stage one, (1) and (2): the most accurate whose mean + deviation is below the budget, else the fastest."""
    order = np.lexsort((models.mean_ms, -models.accuracy))  # the best first
    fits = (models.mean_ms + models.deviation_ms)[order] < budgets_ms[:, None]
    return np.where(fits.any(axis=1), order[fits.argmax(axis=1)], models.mean_ms.argmin())


def explored(bases: Indices, models: Models) -> NDArray[np.bool_]:
    """Stage two, (n, m): the models whose mean lies within one deviation of the base's."""
    away_ms = np.abs(models.mean_ms - models.mean_ms[bases][:, None])
    return away_ms <= models.deviation_ms[bases][:, None]


def utilities(budgets_ms: Floats, models: Models) -> Floats:
    """Utility (3), (n, m): accuracy times (T - (mean + deviation)) / |T - mean|; 0 if it would be negative.

    A negative utility is no probability. If the budget is the mean, the numerator is not positive: it is 0 there.
    """
    left_ms = budgets_ms[:, None] - models.mean_ms
    above_ms = left_ms - models.deviation_ms
    return np.where(above_ms > 0, models.accuracy * above_ms / np.maximum(np.abs(left_ms), 1e-12), 0.0)


def chances(budgets_ms: Floats, models: Models) -> Floats:
    """Return how likely each model is picked, (n, m): the utilities of the explored ones, shared out.

    The base if none of them has any: it is then the fastest model, and nothing keeps the deadline.
    """
    bases = base(budgets_ms, models)
    weights = np.where(explored(bases, models), utilities(budgets_ms, models), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    alone = np.eye(len(models.accuracy))[bases]
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), alone)


def pick(probabilities: Floats, draws: Floats) -> Indices:
    """Stage three: return the model that each draw falls on, (n,); never one of probability 0."""
    steps = probabilities.cumsum(axis=1)
    picked: Indices = (steps <= draws[:, None] * steps[:, -1:]).sum(axis=1)
    return picked


def mdinference(budgets_ms: Floats, models: Models, draws: Floats) -> Indices:
    """Return the model of each request by all three stages, (n,)."""
    return pick(chances(budgets_ms, models), draws)
