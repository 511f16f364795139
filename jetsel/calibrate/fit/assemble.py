"""Fit every policy to some images, and assemble the calibration from the fitted parts."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from jetsel.artefact.calibration import BoundIdentities, Calibration, Confidence, ExpectedStatistics, bins_of
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay
from jetsel.policies.kind import Kind, Table
from jetsel.policies.registry import USUAL
from jetsel.premodel.cascades import log_softmax

Learned = Mapping[str, Any]
"""Policy -> what it learned from one set of images, in its own form; None for nothing."""
Chosen = Mapping[str, Any]
"""Policy -> what is chosen on held-out images, such as the index of its operating point."""


def learn(table: Table, kinds: Sequence[Kind] = USUAL) -> Learned:
    """Fit each kind of policy to a set of images; operating points are chosen later, on held-out images."""
    return {kind.name: kind.learn(table) for kind in kinds}


def draft(identity: BoundIdentities, recording: Recording, temperatures: Mapping[str, float]) -> Calibration:
    """Return a calibration without policies. identity: a calibration may stand for its identities.

    default_policy, because, figures and the facts of energy are placeholders until the policies are compared.
    """
    bound = {name: getattr(identity, name) for name in BoundIdentities.__struct_fields__}
    bound["identities"] = {model: identity.identities[model] for model in recording.models}
    return Calibration(
        **bound,
        temperatures=dict(temperatures),
        costs_ms=dict(recording.costs_ms),
        energies_mj={} if recording.energies is None else dict(recording.energies.mean_mj),
        energies_half_mj={} if recording.energies is None else dict(recording.energies.half_width_mj),
        objective=recording.objective,
        default_policy="cascade",
        because="not compared yet",
        figures={},
        created=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        photographs=len(recording.classes),
    )


def assemble(unfitted: Calibration, learned: Learned, chosen: Chosen, kinds: Sequence[Kind] = USUAL) -> Calibration:
    """Return the calibration with the learned parts. unfitted: see `draft`."""
    able = [kind for kind in kinds if learned[kind.name] is not None and kind.name in chosen]
    return replace(unfitted, parts={kind.name: kind.fitted(learned[kind.name], chosen[kind.name]) for kind in able})


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
