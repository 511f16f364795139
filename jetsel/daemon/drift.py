"""Drift: compares recent images and confidences with those of a family's calibration, whose thresholds age."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.artefact.calibration import ExpectedStatistics
from jetsel.features import NAMES, extract
from jetsel.wire import Answer
from jetsel.wire.status import ConfidenceShift, DriftStatus, RefusalShift

KEPT = 500  # Number of recent images and confidences that are compared
FEWEST = 200  # that are compared; with ten bins, chance alone makes an index of some 9 / 200 = 0.045
SIGNIFICANT = 0.25
"""A population stability index above it is a significant change, see `stability_index`. The highest index of all
features counts, not the median: a gamma of 2 moves 4 of 29 features, to 2, and the median from 0.05 to 0.08
(calibration/imagenet/drift.py)."""
LEAST_SHIFT = 0.05  # of a mean confidence; a smaller shift hardly changes a policy's decisions
HINT = "recalibrate on recent images: jetsel calibrate IMAGES"


class Drift:
    """Keeps the last KEPT images' features and models' confidences of one family. Any thread may call."""

    def __init__(self, expected: ExpectedStatistics, default: str, features_px: int) -> None:
        """default: policy whose answers' confidences are compared. features_px: size at which features are computed."""
        self._expected = expected
        self._default = default
        self._features_px = features_px
        self._lock = threading.Lock()
        self._answers = 0
        self._bins: deque[list[int]] = deque(maxlen=KEPT)  # of each image, the bin of each feature
        self._doubts: deque[tuple[bool, float]] = deque(maxlen=KEPT)  # in doubt?, and its expected probability
        self._confidences: dict[str, deque[float]] = {model: deque(maxlen=KEPT) for model in expected.confidences}

    def add_answer(self, policy: str, reply: Answer, every: int) -> bool:
        """Add the models' confidences; return whether to call `add_image`: for one of `every` answers, never if 0."""
        with self._lock:
            self._answers += 1
            if policy == self._default:
                for ran in reply.ran:
                    if ran.model in self._confidences:
                        self._confidences[ran.model].append(ran.confidence)
            return every > 0 and self._answers % every == 0

    def count_doubt(self, expected_answered: float, *, is_in_doubt: bool) -> None:
        """Add whether an answer with a promise was in doubt. expected_answered: calibrated share without doubt."""
        with self._lock:
            self._doubts.append((is_in_doubt, 1 - expected_answered))

    def add_image(self, photograph: image.Photograph, data: memoryview, limits: image.Limits) -> None:
        """Compute the features of an answered image, and add their bins. data: the bytes that it was decoded from."""
        view = image.to_area(photograph, data, limits, self._features_px)
        size_px = photograph.width_px, photograph.height_px
        features = dict(zip(NAMES, extract(view.bgr, NAMES, self._features_px, size_px), strict=True))
        bins = [int(expected_bins.bins_of(features[name])) for name, expected_bins in self._expected.features.items()]
        with self._lock:
            self._bins.append(bins)

    def status(self) -> DriftStatus:
        """Return what differs from the calibration, and a hint what to do; None for figures that lack images."""
        with self._lock:
            bins = np.array(self._bins)
            confidences = {model: np.array(values) for model, values in self._confidences.items()}
            refusals = _refusal_shift(np.array(self._doubts, float).reshape(-1, 2))
        indices: dict[str, float] = {}
        if len(bins) >= FEWEST:
            features = self._expected.features.items()
            indices = {
                name: round(stability_index(expected_bins.shares, column), 4)
                for (name, expected_bins), column in zip(features, bins.T, strict=True)
            }
        highest = max(indices, key=indices.__getitem__, default=None)
        shifts = [self._shift(model, values) for model, values in confidences.items()]
        changes = [
            f"the confidence of {shift.model} {'fell' if shift.seen < shift.calibrated else 'rose'} "
            f"from {shift.calibrated:.2f} to {shift.seen:.2f}"
            for shift in shifts
            if shift.is_significant and shift.seen is not None and shift.calibrated is not None
        ]
        if highest is not None and indices[highest] > SIGNIFICANT:
            changes.insert(0, f"images differ from those of the calibration ({highest}, index {indices[highest]:.2f})")
        if refusals.is_significant:
            changes.append(f"{refusals.seen:.0%} of the requests are in doubt; {refusals.calibrated:.0%} were expected")
        return DriftStatus(
            photographs=len(bins),
            indices=indices,
            highest=highest,
            median_index=float(np.median(list(indices.values()))) if indices else None,
            reason=None if indices else f"needs {FEWEST} images, has {len(bins)}",
            confidences=shifts,
            hint=f"{'; '.join(changes)}: {HINT}" if changes else None,
            refusals=refusals,
        )

    def _shift(self, model: str, confidences: np.ndarray) -> ConfidenceShift:
        """Compare the mean of a model's recent confidences (n,) with the calibrated one, at 3 standard errors."""
        expected, n = self._expected.confidences[model], len(confidences)
        if n < FEWEST:
            return ConfidenceShift(model, n, None, expected.mean, False)
        mean = float(confidences.mean())
        noise = 3 * expected.deviation / math.sqrt(n)
        return ConfidenceShift(model, n, mean, expected.mean, abs(mean - expected.mean) > max(noise, LEAST_SHIFT))


def _refusal_shift(doubts: np.ndarray) -> RefusalShift:
    """Compare the share of requests in doubt with the expected one. doubts (n, 2): 0 or 1, and its probability."""
    n = len(doubts)
    if n < FEWEST:
        return RefusalShift(n, None, float(doubts[:, 1].mean()) if n else None, False)
    share_here, expected = doubts.mean(axis=0).tolist()
    noise = 3 * math.sqrt(float((doubts[:, 1] * (1 - doubts[:, 1])).sum())) / n
    return RefusalShift(n, share_here, expected, abs(share_here - expected) > max(noise, LEAST_SHIFT))


def stability_index(expected: Sequence[float], bins: NDArray[np.intp]) -> float:
    """Return the population stability index of the bins (n,) of images, against the expected shares.

    It is the sum of (seen - expected) ln(seen / expected) (Siddiqi, Credit Risk Scorecards, 2006: below 0.1 is no
    change, above 0.25 a significant one). Half an image is added to each bin, so that none is empty.
    """
    n = len(bins)
    shares = (np.bincount(bins, minlength=len(expected)) + 0.5) / (n + 0.5 * len(expected))
    expected_shares = (np.asarray(expected) * n + 0.5) / (n + 0.5 * len(expected))
    return float(((shares - expected_shares) * np.log(shares / expected_shares)).sum())
