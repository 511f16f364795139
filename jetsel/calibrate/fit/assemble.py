"""What some images teach every policy, and the calibration that is put together from it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jetsel.artefact.calibration import Calibration, Confidence, ExpectedStatistics, bins_of
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay
from jetsel.policies.kind import Kind, Table, TriedPoint
from jetsel.policies.registry import USUAL
from jetsel.premodel.cascades import log_softmax


@dataclass(frozen=True, eq=False)
class LearnedParts:
    """What one set of images taught these kinds of policy: by name, in each policy's own form, None for nothing."""

    kinds: Sequence[Kind]
    table: Table
    policies: Mapping[str, Any]


def learn(table: Table, kinds: Sequence[Kind] = USUAL) -> LearnedParts:
    """Fit everything that a set of images decides; operating points are chosen once they have been tried on others."""
    return LearnedParts(kinds, table, {kind.name: kind.learn(table) for kind in kinds})


def try_out(kind: Kind, learned: LearnedParts, held: Table) -> list[TriedPoint]:
    """Return each of the policy's operating points on other images; none if nothing was learned."""
    taught = learned.policies[kind.name]
    return [] if taught is None else kind.tried(taught, held)


Chosen = Mapping[str, Any]
"""Policy -> what held-out images decide of it, such as the place of its operating point."""


@dataclass(frozen=True)
class BoundIdentities:
    """What a calibration is bound to: the family, and the identities of its labels, models and features."""

    family: str
    labels_sha256: str
    identities: Mapping[str, str]
    feature_table: str
    decode_px: int
    features_px: int


def assemble(identity: BoundIdentities, recording: Recording, learned: LearnedParts, chosen: Chosen) -> Calibration:
    """Return the calibration of what was learned from some images of a recording.

    What comparison decides is not in it yet: default_policy, because, figures and the facts of energy.
    """
    parts = {
        kind.name: kind.fitted(learned.policies[kind.name], chosen[kind.name])
        for kind in learned.kinds
        if learned.policies[kind.name] is not None and kind.name in chosen
    }
    table = learned.table
    return Calibration(
        family=identity.family,
        labels_sha256=identity.labels_sha256,
        identities={model: identity.identities[model] for model in table.models},
        feature_table=identity.feature_table,
        decode_px=identity.decode_px,
        features_px=identity.features_px,
        temperatures=dict(zip(table.models, table.temperatures, strict=True)),
        costs_ms=dict(recording.costs_ms),
        energies_mj=dict(recording.energies_mj or {}),
        objective=recording.objective,
        default_policy="cascade",
        because="not compared yet",
        figures={},
        created=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        photographs=len(table.classes),
        parts=parts,
    )


def expected(recording: Recording, run: PolicyReplay, calibration: Calibration) -> ExpectedStatistics:
    """Return the distributions. run: of the default policy, on the photographs of the recording."""
    confidences = {}
    for place, model in enumerate(recording.models):
        reached = run.ran[:, place]
        if reached.any():
            logits = recording.logits[place][reached].astype(np.float32)
            sure = np.exp(log_softmax(logits, calibration.temperatures[model])).max(axis=1)
            confidences[model] = Confidence(float(sure.mean()), float(sure.std()))
    columns = zip(recording.feature_names, recording.features.T, strict=True)
    return ExpectedStatistics({name: bins_of(values) for name, values in columns}, confidences)
