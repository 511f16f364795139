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
    """Return the diagram of each model over the whole recording."""
    right = recording.right(criterion)
    before = recording.confidences(criterion, dict.fromkeys(recording.models, 1.0))
    after = recording.confidences(criterion, temperatures)
    found = []
    for i, model in enumerate(recording.models):
        raw, scaled = bins(before[:, i], right[:, i]), bins(after[:, i], right[:, i])
        errors = calibration_error(raw), calibration_error(scaled)
        found.append(Reliability(model, temperatures[model], *errors, raw, scaled))
    return found


def bins(
    confidences: NDArray[np.float32], right: NDArray[np.bool_], number: int = BINS
) -> list[tuple[float, float, int]]:
    """Return (mean confidence, share right, photographs) of each of the equal bins that is not empty."""
    which = np.minimum((confidences * number).astype(int), number - 1)
    return [
        (float(confidences[which == b].mean()), float(right[which == b].mean()), int((which == b).sum()))
        for b in range(number)
        if (which == b).any()
    ]


def calibration_error(of_bins: list[tuple[float, float, int]]) -> float:
    """Expected calibration error: the mean gap of confidence and accuracy over equal bins (Guo et al., eq. 3)."""
    gaps = [abs(confidence - share) * n for confidence, share, n in of_bins]
    return float(sum(gaps) / sum(n for *_, n in of_bins))
