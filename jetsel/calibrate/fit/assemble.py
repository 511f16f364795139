"""Fit every policy to some images, and assemble the calibration from the fitted parts."""

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
    """What each kind of policy learned from one set of images; `policies` maps a name to it, None for nothing."""

    kinds: Sequence[Kind]
    table: Table
    policies: Mapping[str, Any]


def learn(table: Table, kinds: Sequence[Kind] = USUAL) -> LearnedParts:
    """Fit each kind of policy to a set of images; operating points are chosen later, on held-out images."""
    return LearnedParts(kinds, table, {kind.name: kind.learn(table) for kind in kinds})


def try_out(kind: Kind, learned: LearnedParts, held: Table) -> list[TriedPoint]:
    """Return the results of the policy's operating points on held-out images; none if nothing was learned."""
    taught = learned.policies[kind.name]
    return [] if taught is None else kind.tried(taught, held)


Chosen = Mapping[str, Any]
"""Policy -> what is chosen on held-out images, such as the index of its operating point."""


@dataclass(frozen=True)
class BoundIdentities:
    """The identities of family, labels, models and features that a calibration is valid for."""

    family: str
    labels_sha256: str
    identities: Mapping[str, str]
    feature_table: str
    decode_px: int
    features_px: int


def assemble(identity: BoundIdentities, recording: Recording, learned: LearnedParts, chosen: Chosen) -> Calibration:
    """Return the calibration with the learned parts.

    default_policy, because, figures and the facts of energy are placeholders until the policies are compared.
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
    """Return the expected distributions of features and confidences. run: the default policy's, on the recording."""
    confidences = {}
    for place, model in enumerate(recording.models):
        reached = run.ran[:, place]
        if reached.any():
            logits = recording.logits[place][reached].astype(np.float32)
            sure = np.exp(log_softmax(logits, calibration.temperatures[model])).max(axis=1)
            confidences[model] = Confidence(float(sure.mean()), float(sure.std()))
    columns = zip(recording.feature_names, recording.features.T, strict=True)
    return ExpectedStatistics({name: bins_of(values) for name, values in columns}, confidences)
