"""Puts a calibration together from what was learned and what was chosen on held-out photographs."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jetsel.calibrate.held_out import Learned
from jetsel.policies.calibration import Calibration
from jetsel.policies.registry import KINDS
from jetsel.wire import Criterion

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


def assemble(
    identity: Identity, learned: Mapping[Criterion, Learned], chosen: Mapping[Criterion, Chosen]
) -> Calibration:
    """Return the calibration of every criterion in `learned`, all learned from the same photographs.

    What comparison decides is not in it yet: default_policy, because, figures and the facts of energy.
    """
    first = next(iter(learned.values()))
    train, plan = first.train, first.plan
    parts = {}
    for kind in KINDS:
        taught = {criterion: one.policies[kind.name] for criterion, one in learned.items()}
        if all(one is not None for one in taught.values()):
            parts[kind.name] = kind.fitted(
                taught, {criterion: chosen[criterion].get(kind.name) for criterion in taught}
            )
    return Calibration(
        family=identity.family,
        labels_sha256=identity.labels_sha256,
        identities={model: identity.identities[model] for model in train.models},
        feature_table=identity.feature_table,
        decode_px=identity.decode_px,
        features_px=identity.features_px,
        features=plan.features,
        k=min(plan.k, len(train.classes)),
        temperatures=dict(first.temperatures),
        costs_ms=dict(train.costs_ms),
        energies_mj=dict(train.energies_mj or {}),
        objective=train.objective,
        default_policy=dict.fromkeys(learned, "cascade"),
        because="not compared yet",
        figures={},
        created=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        right={criterion: one.train.right(criterion) for criterion, one in learned.items()},
        parts=parts,
    )
