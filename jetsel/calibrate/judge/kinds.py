"""Which kinds of images the chain's neighbours tell apart: the images that begin with one model, and how they look."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.judge.findings import ImageKind
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay

LEAST_SHARE = 0.03  # of the images: fewer are no kind
LEAST_TOLD = 0.8  # of pairs of one such image and another one, those that one feature orders as the kind has it

LOOKS = {
    "colourfulness": ("grey", "colourful"),
    "avg_perceived_brightness": ("dark", "bright"),
    "area": ("small", "large"),
    "noise": ("free of noise", "noisy"),
    "detail": ("blurred", "sharp"),
    "contrast": ("low in contrast", "high in contrast"),
    "n_keypoints": ("plain", "busy"),
}
"""How images of little and of much of a feature look; of features that tell a kind equally well, the first."""


def kinds_found(recording: Recording, run: PolicyReplay) -> list[ImageKind]:
    """Return the kinds that the chain's run tells apart, the largest first; none if no feature describes one.

    A kind is all images whose first model is the same; the feature is the one whose order agrees best with it (the area
    under the ROC curve, Hanley and McNeil 1982).
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
    """Return how likely an image of the kind has more of a feature than another one; half of equal pairs count."""
    _, rank, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2  # ranks from 1; equal values share the mean of theirs
    inside = int(of_kind.sum())
    above = float(middle[rank][of_kind].sum()) - inside * (inside + 1) / 2
    return above / (inside * (len(values) - inside))
