"""What a fit on one stored recording gives: neighbours, links, thresholds and temperatures, times aside."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from jetsel.calibrate.assemble import Identity
from jetsel.calibrate.calibrating import Order, calibrate
from jetsel.calibrate.record import load
from jetsel.features import table_hash
from jetsel.premodel.neighbours import Neighbours
from jetsel.zoo import STARTER, scan

FEATURES_MS = 0.3  # of any features: what is measured live would differ from run to run
QUERIES, NEAREST = 50, 5


def fit(recording: Path) -> dict[str, Any]:
    """Fit and compare everything on the recording; return what does not depend on clocks, as JSON can say it."""
    family = scan([STARTER]).families["starter"]
    loaded = load(recording, family)
    identity = Identity(family.name, family.labels.sha256, loaded.models_sha256, table_hash(), family.decode_px)
    found = calibrate(
        loaded, identity, Order(names=tuple(family.labels.names)), lambda _: FEATURES_MS, lambda *_: None
    ).calibration
    chain, embedding = found.parts["chain"].facts, found.parts["embedding"]
    points = found.parts["chain"].arrays["points"]
    neighbours = Neighbours(points)
    near = [neighbours.nearest(point, NEAREST)[0].tolist() for point in points[:QUERIES]]
    return {
        "models": list(found.model_sha256),
        "features": list(found.features),
        "k": found.k,
        "links": {criterion: list(links.models) for criterion, links in chain.items()},
        "temperatures": dict(found.temperatures),
        "cascades": _rungs(found.parts["cascade"].facts),
        "averaged": _rungs(found.parts["cascade-averaged"].facts),
        "neighbours": near,
        "points": _digest(points),
        "right": {criterion: _digest(table) for criterion, table in found.right.items()},
        "embeddings": _digest(embedding.arrays["points"].astype(np.float32)),
        "embedding_k": {criterion: weighing.k for criterion, weighing in embedding.facts.items()},
        "soundness": {
            criterion: [links.soundness.limit, [list(step) for step in links.soundness.steps]]
            for criterion, links in chain.items()
        },
    }


def _rungs(fitted: Any) -> dict[str, list[list[Any]]]:
    return {criterion: [[rung.model, rung.threshold] for rung in rungs] for criterion, rungs in fitted.items()}


def _digest(array: Any) -> str:
    found = np.ascontiguousarray(array)
    return hashlib.sha256(f"{found.shape} {found.dtype}".encode() + found.tobytes()).hexdigest()
