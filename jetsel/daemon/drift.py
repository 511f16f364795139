"""Drift: compares recent images and confidences with those of a family's calibration."""

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
FEWEST = 200  # with ten bins, chance alone makes an index of some 9 / 200 = 0.045
SIGNIFICANT = 0.25
"""A population stability index above it is a significant change, see `stability_index`. The highest index of all
features counts, not the median: a gamma of 2 moves 4 of 29 features, to 2, and the median from 0.05 to 0.08
(calibration/imagenet/drift.py)."""
LEAST_SHIFT = 0.05  # of a mean confidence; a smaller shift hardly changes a policy's decisions
HINT = "recalibrate on recent images: jetsel calibrate IMAGES"


class Drift:
    """Recent images and confidences of one family, compared with its calibration. Any thread may call."""

    def __init__(self, expected: ExpectedStatistics, default: str, features_px: int) -> None:
        """default: the policy under which the expected confidences were recorded."""
        self._expected = expected
        self._default = default
        self._features_px = features_px
        self._lock = threading.Lock()
        self._answers = 0
        self._bins: deque[list[int]] = deque(maxlen=KEPT)
        self._doubts: deque[tuple[bool, float]] = deque(maxlen=KEPT)  # and its expected probability
        self._confidences: dict[str, deque[float]] = {model: deque(maxlen=KEPT) for model in expected.confidences}

    def add_answer(self, policy: str, reply: Answer, every: int) -> bool:
        """Note the models' confidences; return whether to check this image: True for every Nth, never if 0."""
        with self._lock:
            self._answers += 1
            if policy == self._default:
                for ran in reply.ran:
                    if ran.model in self._confidences:
                        self._confidences[ran.model].append(ran.confidence)
            return every > 0 and self._answers % every == 0

    def count_doubt(self, answered: float, *, is_in_doubt: bool) -> None:
        """Note whether an answer with a promise was in doubt. answered: calibrated share of answers not in doubt."""
        with self._lock:
            self._doubts.append((is_in_doubt, 1 - answered))

    def add_image(self, photograph: image.Photograph, data: memoryview, limits: image.Limits) -> None:
        """Compute and note the features of an answered image. data: the bytes that it was decoded from."""
        view = image.of_area(photograph, data, limits, self._features_px)
        size_px = photograph.width_px, photograph.height_px
        features = dict(zip(NAMES, extract(view.bgr, NAMES, self._features_px, size_px), strict=True))
        bins = [int(expected_bins.of(features[name])) for name, expected_bins in self._expected.features.items()]
        with self._lock:
            self._bins.append(bins)

    def status(self) -> DriftStatus:
        """Return what has changed, and a hint what to do."""
        with self._lock:
            bins = np.array(self._bins)
            confidences = {model: np.array(values) for model, values in self._confidences.items()}
            refusals = _refusal_shift(np.array(self._doubts, float).reshape(-1, 2))
        indices: dict[str, float] = {}
        if len(bins) >= FEWEST:
            features = self._expected.features.items()
            indices = {
                name: round(stability_index(one.shares, column), 4)
                for (name, one), column in zip(features, bins.T, strict=True)
            }
        highest = max(indices, key=indices.__getitem__, default=None)
        shifts = [self._shift(model, values) for model, values in confidences.items()]
        moved = [shift for shift in shifts if shift.is_significant]
        words = [
            f"the confidence of {one.model} {'fell' if one.seen < one.calibrated else 'rose'} "
            f"from {one.calibrated:.2f} to {one.seen:.2f}"
            for one in moved
            if one.seen is not None and one.calibrated is not None
        ]
        if highest is not None and indices[highest] > SIGNIFICANT:
            words.insert(0, f"images differ from those of the calibration ({highest}, index {indices[highest]:.2f})")
        if refusals.is_significant:
            words.append(f"{refusals.seen:.0%} of the requests are in doubt; {refusals.calibrated:.0%} were expected")
        return DriftStatus(
            photographs=len(bins),
            indices=indices,
            highest=highest,
            median_index=float(np.median(list(indices.values()))) if indices else None,
            reason=None if indices else f"needs {FEWEST} images, has {len(bins)}",
            confidences=shifts,
            hint=f"{'; '.join(words)}: {HINT}" if words else None,
            refusals=refusals,
        )

    def _shift(self, model: str, row: np.ndarray) -> ConfidenceShift:
        expected = self._expected.confidences[model]
        if len(row) < FEWEST:
            return ConfidenceShift(model, len(row), None, expected.mean, False)
        mean = float(row.mean())
        noise = 3 * expected.deviation / math.sqrt(len(row))
        return ConfidenceShift(
            model, len(row), mean, expected.mean, abs(mean - expected.mean) > max(noise, LEAST_SHIFT)
        )


def _refusal_shift(doubts: np.ndarray) -> RefusalShift:
    """Compare how many recent requests were in doubt with the expected probabilities; doubts: (n, 2)."""
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
