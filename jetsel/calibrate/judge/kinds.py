"""Describe the kinds of images that the chain distinguishes: those that start with the same model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.judge.findings import ImageKind
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay

LEAST_SHARE = 0.03  # smallest share of the images that counts as a kind
LEAST_TOLD = 0.8  # smallest area under the ROC curve of a feature that describes a kind

LOOKS = {
    "colourfulness": ("grey", "colourful"),
    "avg_perceived_brightness": ("dark", "bright"),
    "area": ("small", "large"),
    "noise": ("free of noise", "noisy"),
    "detail": ("blurred", "sharp"),
    "contrast": ("low in contrast", "high in contrast"),
    "n_keypoints": ("plain", "busy"),
}
"""Feature -> look of images with a low and with a high value; the first feature wins a tie."""


def kinds_found(recording: Recording, run: PolicyReplay) -> list[ImageKind]:
    """Return the kinds of images that one feature describes, the largest first.

    A kind is all images that start with the same model. The feature with the best area under the ROC curve describes it
    (Hanley and McNeil 1982).
    """
    first = run.ran.argmax(axis=1)
    values_by_name = {name: recording.feature(name) for name in LOOKS if name in recording.feature_names}
    kinds = []
    for column in np.unique(first):
        of_kind = first == column
        share = float(of_kind.mean())
        if not values_by_name or not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
            continue
        looks = {name: _order(values, of_kind) for name, values in values_by_name.items()}
        best = max(looks, key=lambda name: round(abs(looks[name] - 0.5), 2))
        if abs(looks[best] - 0.5) >= LEAST_TOLD - 0.5:
            look = LOOKS[best][int(looks[best] > 0.5)]
            kinds.append(ImageKind(recording.models[column], share, look))
    return sorted(kinds, key=lambda kind: -kind.share)


def _order(values: NDArray[np.float32], of_kind: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: how likely a value of the kind is larger than another; ties count half."""
    _, rank, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2  # ranks from 1; equal values share their mean rank
    inside = int(of_kind.sum())
    above = float(middle[rank][of_kind].sum()) - inside * (inside + 1) / 2
    return above / (inside * (len(values) - inside))
