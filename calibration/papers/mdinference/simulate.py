"""One simulation: n requests under an SLA, a network, a set of models and a policy, all at once as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.papers.mdinference.selections import SELECTIONS
from calibration.papers.mdinference.stages import Floats, Indices, Models


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
    chosen = SELECTIONS[policy](sla_ms - network_ms, sla_ms, models, draws)
    took_ms = chance.normal(models.mean_ms[chosen], models.deviation_ms[chosen])
    latency_ms = network_ms + np.maximum(took_ms, 0.0)
    return Outcome(models, chosen, latency_ms, latency_ms <= sla_ms)
