"""One simulation: n requests under an SLA, a network, a set of models and a policy, all at once as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.policies import selection
from jetsel.policies.selection import Models

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Pick = Callable[[Floats, float, Models, Floats], Indices]
"""Time budgets (n,) ms, the SLA in ms, models, draws (n,) in [0, 1) -> the model of each request (n,)."""


def _fastest(budgets_ms: Floats, _sla_ms: float, models: Models, _draws: Floats) -> Indices:
    return np.full(len(budgets_ms), models.mean_ms.argmin())


def _most_accurate(budgets_ms: Floats, _sla_ms: float, models: Models, _draws: Floats) -> Indices:
    return np.full(len(budgets_ms), models.accuracy.argmax())


def _greedy(budgets_ms: Floats, sla_ms: float, models: Models, _draws: Floats) -> Indices:
    """V-A: the most accurate that can complete within the SLA, whatever the network takes."""
    return np.repeat(selection.base(np.array([sla_ms]), models), len(budgets_ms))


def _random(_budgets_ms: Floats, _sla_ms: float, models: Models, draws: Floats) -> Indices:
    return (draws * len(models.accuracy)).astype(np.int64)


def _related_random(budgets_ms: Floats, _sla_ms: float, models: Models, draws: Floats) -> Indices:
    """V-C: any of the exploration set."""
    return selection.pick(selection.explored(selection.base(budgets_ms, models), models).astype(float), draws)


def _related_accurate(budgets_ms: Floats, _sla_ms: float, models: Models, _draws: Floats) -> Indices:
    """V-C: the most accurate of the exploration set."""
    explored = selection.explored(selection.base(budgets_ms, models), models)
    best: Indices = np.where(explored, models.accuracy, -1.0).argmax(axis=1)
    return best


def _mdinference(budgets_ms: Floats, _sla_ms: float, models: Models, draws: Floats) -> Indices:
    return selection.mdinference(budgets_ms, models, draws)


POLICIES: Mapping[str, Pick] = {
    "static-latency": _fastest,
    "static-accuracy": _most_accurate,
    "static-greedy": _greedy,
    "random": _random,
    "related-random": _related_random,
    "related-accurate": _related_accurate,
    "mdinference": _mdinference,
}


@dataclass(frozen=True)
class Outcome:
    """What became of n requests: the model of each, its time there and back, and which were in time."""

    models: Models
    chosen: Indices
    latency_ms: Floats
    on_time: NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        """Aggregate accuracy of what was chosen, as a share (III)."""
        return float(self.models.accuracy[self.chosen].mean())

    @property
    def attainment(self) -> float:
        """Share of the requests that were in time."""
        return float(self.on_time.mean())

    def duplicated(self, on_device: float) -> float:
        """Aggregate accuracy where a model on the device, of this accuracy, answers what is late (IV-E)."""
        return float(np.where(self.on_time, self.models.accuracy[self.chosen], on_device).mean())

    def usage(self) -> Floats:
        """Share of the requests by model, (m,)."""
        return np.bincount(self.chosen, minlength=len(self.models.accuracy)) / len(self.chosen)


def simulate(models: Models, network_ms: Floats, sla_ms: float, policy: str, chance: np.random.Generator) -> Outcome:
    """Simulate a request for each network time, (n,) float64; T_nw is known when the model is selected (III)."""
    draws = chance.random(len(network_ms))
    chosen = POLICIES[policy](sla_ms - network_ms, sla_ms, models, draws)
    took_ms = chance.normal(models.mean_ms[chosen], models.deviation_ms[chosen])
    latency_ms = network_ms + np.maximum(took_ms, 0.0)
    return Outcome(models, chosen, latency_ms, latency_ms <= sla_ms)


def spanning(models: Models, network_ms: Floats, slas_ms: Floats, least: float, chance: np.random.Generator) -> Indices:
    """Return the models that MDInference chooses for at least this share of requests under some SLA (VI), by number."""
    most = np.zeros(len(models.accuracy))
    for sla_ms in slas_ms:
        most = np.maximum(most, simulate(models, network_ms, float(sla_ms), "mdinference", chance).usage())
    return np.flatnonzero(most >= least)
