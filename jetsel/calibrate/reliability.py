"""How true a model's confidences are, before and after temperature scaling (Guo et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.findings import Reliability
from jetsel.calibrate.recording import Recording
from jetsel.wire import Criterion

BINS = 15


def reliability(recording: Recording, criterion: Criterion, temperatures: Mapping[str, float]) -> list[Reliability]:
    """Return the error of each model's confidences over the whole recording."""
    right = recording.right(criterion)
    before = recording.confidences(criterion, dict.fromkeys(recording.models, 1.0))
    after = recording.confidences(criterion, temperatures)
    found = []
    for i, model in enumerate(recording.models):
        errors = [calibration_error(confidences[:, i], right[:, i]) for confidences in (before, after)]
        found.append(Reliability(model, temperatures[model], *errors))
    return found


def calibration_error(confidences: NDArray[np.float32], right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Expected calibration error: the mean gap of confidence and accuracy over equal bins (Guo et al., eq. 3).

    confidences, right: (n,).
    """
    which = np.minimum((confidences * bins).astype(int), bins - 1)
    gaps = np.bincount(which, confidences - right, bins)  # of each bin, times the photographs in it
    return float(np.abs(gaps).sum() / len(right))
