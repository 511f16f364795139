"""What some photographs teach every policy, and what each operating point of it gives on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.goal import Outcomes
from jetsel.calibrate.recording import Recording
from jetsel.policies.kind import Kind, Plan
from jetsel.policies.registry import KINDS
from jetsel.wire import Criterion

LOWEST, HIGHEST = 0.05, 20.0
PRECISION = 1e-4
_GOLDEN = (5**0.5 - 1) / 2


def negative_log_likelihood(logits: NDArray[np.float32], classes: NDArray[np.int64], temperature: float) -> float:
    """Mean negative log likelihood of the true classes (n,) under softmax(logits (n, c) / temperature)."""
    scaled = logits.astype(np.float64) / temperature
    scaled -= scaled.max(axis=1, keepdims=True)
    of_class = np.take_along_axis(scaled, classes[:, None], axis=1)[:, 0]
    return float((np.log(np.exp(scaled).sum(axis=1)) - of_class).mean())


def fit_temperature(logits: NDArray[np.float32], classes: NDArray[np.int64]) -> float:
    """Return the temperature of least negative log likelihood, by golden-section search over its logarithm.

    The loss is convex in 1 / temperature, so it has one minimum. logits: (n, c); classes: (n,).
    """
    low, high = np.log(LOWEST), np.log(HIGHEST)
    while high - low > PRECISION:
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if negative_log_likelihood(logits, classes, np.exp(left)) < negative_log_likelihood(
            logits, classes, np.exp(right)
        ):
            high = right
        else:
            low = left
    return float(np.exp((low + high) / 2))


@dataclass(frozen=True, eq=False)
class Learned:
    """What one set of photographs taught under one criterion. policies: in each policy's own form, None for nothing."""

    train: Recording
    criterion: Criterion
    plan: Plan
    temperatures: Mapping[str, float]
    policies: Mapping[str, Any]


def learn(train: Recording, criterion: Criterion, plan: Plan, temperatures: Mapping[str, float]) -> Learned:
    """Fit what has a closed set of photographs to be fitted on; the rest is weighed when it is tried."""
    table = train.table(criterion, temperatures)
    taught = {kind.name: kind.learn(table, plan) for kind in KINDS}
    return Learned(train, criterion, plan, temperatures, taught)


def fit_temperatures(recording: Recording) -> dict[str, float]:
    """Each model's temperature on these photographs; 1 where the logits are divided by one already.

    1 as well for a model that is always right, of which photographs tell nothing. Such is the model whose answers stand
    for labels: the temperature of least loss would make it sure of anything.
    """
    return {
        model: 1.0
        if recording.is_scaled or (logits.argmax(axis=1) == recording.classes).all()
        else fit_temperature(logits.astype(np.float32), recording.classes)
        for model, logits in zip(recording.models, recording.logits, strict=True)
    }


def try_out(kind: Kind, learned: Learned, held: Recording) -> list[Outcomes]:
    """Return what each of the policy's operating points gives on other photographs; none where nothing was learned."""
    taught = learned.policies[kind.name]
    if taught is None:
        return []

    def energy_mj(ran: NDArray[np.bool_]) -> Any:
        return ran @ held.costs("energy") if held.knows_energy else None

    return [
        Outcomes(one.correct, one.ran @ held.costs("time"), energy_mj(one.ran))
        for one in kind.tried(taught, held.table(learned.criterion, learned.temperatures))
    ]
