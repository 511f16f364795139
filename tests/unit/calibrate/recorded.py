"""Recordings small enough to work their numbers out by hand, and larger ones drawn by a seed."""

from collections.abc import Mapping

import numpy as np

from jetsel.artefact.calibration import BoundIdentities
from jetsel.calibrate.record.recording import Energies, Recording
from jetsel.features import table_hash

COSTS_MS = {"s": 1.0, "m": 3.0, "l": 10.0}
ENERGIES = Energies({"s": 12.0, "m": 6.0, "l": 30.0}, dict.fromkeys("sml", 1.0), 4.0)
"""The fastest is not the most frugal."""


def bound(hashes: Mapping[str, str]) -> BoundIdentities:
    """The identities of a drawn family with these models."""
    return BoundIdentities(
        family="drawn",
        labels_sha256="d" * 64,
        identities=dict(hashes),
        feature_table=table_hash(),
        decode_px=64,
        features_px=4096,
    )


def drawn(seed: int, photographs: int = 30, classes: int = 7) -> Recording:
    """Three models, each surer and more often right than the one before it."""
    draw = np.random.default_rng(seed)
    true = draw.integers(0, classes, photographs)
    logits = draw.normal(size=(3, photographs, classes)).astype(np.float32)
    for strength, of_model in enumerate(logits, 1):
        of_model[np.arange(photographs), true] += strength
    features = draw.random((photographs, 2), dtype=np.float32)
    return Recording(tuple(COSTS_MS), logits, true, features, COSTS_MS, feature_names=("contrast", "hue1"))


def of_two_classes(*margins: list[float], classes: list[int]) -> Recording:
    """Models s, m, ... whose logits are (margin, 0): a margin over 0 says class 0, its confidence grows with it."""
    logits = np.stack([np.stack([np.array(m, np.float32), np.zeros(len(m), np.float32)], axis=1) for m in margins])
    models = tuple(COSTS_MS)[: len(margins)]
    features = np.zeros((len(classes), 1), np.float32)
    costs_ms = {model: COSTS_MS[model] for model in models}
    return Recording(models, logits, np.array(classes), features, costs_ms, feature_names=("contrast",))


def margin(probability: float) -> float:
    """The margin at which class 0 has this probability at temperature 1."""
    return float(np.log(probability / (1 - probability)))
