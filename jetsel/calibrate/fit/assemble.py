"""What some images teach every policy, and the calibration that is put together from it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, Confidence, Expected, bins_of
from jetsel.calibrate.fit.goal import Outcomes
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Run
from jetsel.policies.kind import ChainPlan, Kind
from jetsel.policies.registry import USUAL
from jetsel.premodel.cascades import log_softmax

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
    """What one set of photographs taught these kinds of policy.

    policies: by name, in each policy's own form, None for nothing.
    """

    kinds: Sequence[Kind]
    train: Recording
    plan: ChainPlan
    temperatures: Mapping[str, float]
    policies: Mapping[str, Any]


def learn(
    train: Recording,
    plan: ChainPlan,
    temperatures: Mapping[str, float],
    kinds: Sequence[Kind] = USUAL,
) -> Learned:
    """Fit what has a closed set of photographs to be fitted on; the rest is weighed when it is tried."""
    table = train.table(temperatures)
    taught = {kind.name: kind.learn(table, plan) for kind in kinds}
    return Learned(kinds, train, plan, temperatures, taught)


def fit_temperatures(recording: Recording) -> dict[str, float]:
    """Each model's temperature on these photographs; 1 if the logits are divided by one already.

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
    """Return what each of the policy's operating points gives on other photographs; none if nothing was learned."""
    taught = learned.policies[kind.name]
    if taught is None:
        return []

    def energy_mj(ran: NDArray[np.bool_]) -> Any:
        return ran @ held.costs("energy") if held.knows_energy else None

    return [
        Outcomes(one.correct, one.ran @ held.costs("time"), energy_mj(one.ran))
        for one in kind.tried(taught, held.table(learned.temperatures))
    ]


Chosen = Mapping[str, Any]
"""Policy -> the place of its operating point, or, of the chain, its soundness: what held-out photographs decide."""


@dataclass(frozen=True)
class Identity:
    """What a calibration is bound to: the family, and the identities of its labels, models and features."""

    family: str
    labels_sha256: str
    identities: Mapping[str, str]
    feature_table: str
    decode_px: int
    features_px: int


def assemble(identity: Identity, learned: Learned, chosen: Chosen) -> Calibration:
    """Return the calibration of what was learned, at the chosen operating points.

    What comparison decides is not in it yet: default_policy, because, figures and the facts of energy.
    """
    train, plan = learned.train, learned.plan
    parts = {
        kind.name: kind.fitted(taught, chosen.get(kind.name))
        for kind in learned.kinds
        if (taught := learned.policies[kind.name]) is not None
    }
    return Calibration(
        family=identity.family,
        labels_sha256=identity.labels_sha256,
        identities={model: identity.identities[model] for model in train.models},
        feature_table=identity.feature_table,
        decode_px=identity.decode_px,
        features_px=identity.features_px,
        features=plan.features,
        k=min(plan.k, len(train.classes)),
        temperatures=dict(learned.temperatures),
        costs_ms=dict(train.costs_ms),
        energies_mj=dict(train.energies_mj or {}),
        objective=train.objective,
        default_policy="cascade",
        because="not compared yet",
        figures={},
        created=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        right=train.right,
        parts=parts,
    )


def expected(recording: Recording, run: Run, calibration: Calibration) -> Expected:
    """Return the distributions. run: of the default policy, on the photographs of the recording."""
    confidences = {}
    for place, model in enumerate(recording.models):
        reached = run.ran[:, place]
        if reached.any():
            logits = recording.logits[place][reached].astype(np.float32)
            sure = np.exp(log_softmax(logits, calibration.temperatures[model])).max(axis=1)
            confidences[model] = Confidence(float(sure.mean()), float(sure.std()))
    columns = zip(recording.feature_names, recording.features.T, strict=True)
    return Expected({name: bins_of(values) for name, values in columns}, confidences)
