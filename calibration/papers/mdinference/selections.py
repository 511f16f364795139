"""MDInference's selection of a model, and the selections that it is compared with (V-A, V-C, VI), over arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from calibration.papers.mdinference import stages
from calibration.papers.mdinference.stages import Floats, Indices, Models

Select = Callable[[Floats, float, Models, Floats], Indices]
"""Time budgets (n,) ms, the SLA in ms, models, draws (n,) in [0, 1) -> the model of each request (n,)."""

BUDGETS = 1000  # that are tried for the spanning subset, evenly from none to twice the slowest model's mean
LEAST_USE = 0.01  # of these, for a model to belong to it


def _fastest(budgets_ms: Floats, _sla_ms: float, models: Models, _draws: Floats) -> Indices:
    return np.full(len(budgets_ms), models.mean_ms.argmin())


def _most_accurate(budgets_ms: Floats, _sla_ms: float, models: Models, _draws: Floats) -> Indices:
    return np.full(len(budgets_ms), models.accuracy.argmax())


def _greedy(budgets_ms: Floats, sla_ms: float, models: Models, _draws: Floats) -> Indices:
    """V-A: the most accurate that can complete within the SLA, whatever the network takes."""
    return np.repeat(stages.base(np.array([sla_ms]), models), len(budgets_ms))


def _random(_budgets_ms: Floats, _sla_ms: float, models: Models, draws: Floats) -> Indices:
    return (draws * len(models.accuracy)).astype(np.int64)


def _related_random(budgets_ms: Floats, _sla_ms: float, models: Models, draws: Floats) -> Indices:
    """V-C: any of the exploration set."""
    return stages.pick(stages.explored(stages.base(budgets_ms, models), models).astype(float), draws)


def _related_accurate(budgets_ms: Floats, _sla_ms: float, models: Models, _draws: Floats) -> Indices:
    """V-C: the most accurate of the exploration set."""
    explored = stages.explored(stages.base(budgets_ms, models), models)
    best: Indices = np.where(explored, models.accuracy, -1.0).argmax(axis=1)
    return best


def _mdinference(budgets_ms: Floats, _sla_ms: float, models: Models, draws: Floats) -> Indices:
    return stages.mdinference(budgets_ms, models, draws)


def _spanning(budgets_ms: Floats, _sla_ms: float, models: Models, draws: Floats) -> Indices:
    kept = spanning(models)
    return kept[stages.mdinference(budgets_ms, Models(*(column[kept] for column in models)), draws)]


def spanning(models: Models) -> Indices:
    """Return the numbers of the models that MDInference chooses at all, over every budget: the subset of section VI.

    The paper leaves open how to find it without measuring; it follows from accuracy and times alone.
    """
    budgets_ms = np.linspace(0.0, 2 * models.mean_ms.max(), BUDGETS)
    return np.flatnonzero(stages.chances(budgets_ms, models).mean(axis=0) >= LEAST_USE)


SELECTIONS: Mapping[str, Select] = {
    "static-latency": _fastest,
    "static-accuracy": _most_accurate,
    "static-greedy": _greedy,
    "random": _random,
    "related-random": _related_random,
    "related-accurate": _related_accurate,
    "spanning": _spanning,
    "mdinference": _mdinference,
}
