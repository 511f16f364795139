"""Fit each model's temperature, which divides its logits so that its mean confidence matches its accuracy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.record.recording import Recording

LOWEST, HIGHEST = 0.05, 20.0  # temperatures
STEPS, PRECISION = 30, 1e-4  # most iterations; relative change at which they end


def fit_temperature(logits: NDArray[np.floating], classes: NDArray[np.int64]) -> float:
    """Return the temperature with the least negative log likelihood (Guo et al. 2017, section 4.2).

    The loss is convex in 1 / temperature, and Newton's method finds its minimum. The slope is the mean logit under the
    model's probabilities, less the true class's logit; the curvature is the variance of the logits. A step that leaves
    the bracketing interval is replaced by the interval's middle. logits: (n, c); classes: (n,).
    """
    shifted = logits.astype(np.float32)
    shifted -= shifted.max(axis=1, keepdims=True)
    true_logit = float(np.take_along_axis(shifted, classes[:, None], axis=1).mean(dtype=np.float64))
    low, high = 1 / HIGHEST, 1 / LOWEST
    inverse = 1.0
    for _ in range(STEPS):
        probs = np.exp(shifted * np.float32(inverse))
        probs /= probs.sum(axis=1, keepdims=True)
        mean = np.einsum("nc,nc->n", probs, shifted)
        slope = float(mean.mean(dtype=np.float64)) - true_logit
        curvature = float((np.einsum("nc,nc,nc->n", probs, shifted, shifted) - mean * mean).mean(dtype=np.float64))
        low, high = (low, inverse) if slope > 0 else (inverse, high)
        step = inverse - slope / curvature if curvature > 0 else low
        next_inverse = step if low < step < high else (low + high) / 2
        if abs(next_inverse / inverse - 1) < PRECISION:
            return 1 / next_inverse
        inverse = next_inverse
    return 1 / inverse


def fit_temperatures(recording: Recording) -> dict[str, float]:
    """Return each model's temperature, which is 1 if the recorded logits are scaled already.

    It is 1 too for a model that is always right, such as the one whose answers replace labels: the fitted temperature
    would make that model certain of every answer.
    """
    return {
        model: 1.0
        if recording.is_scaled or (logits.argmax(axis=1) == recording.classes).all()
        else fit_temperature(logits, recording.classes)
        for model, logits in zip(recording.models, recording.logits, strict=True)
    }
