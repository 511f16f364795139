"""Temperature scaling: one number a model that makes its probabilities true (Guo et al. 2017, section 4.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LOWEST, HIGHEST = 0.05, 20.0
PRECISION = 1e-4
_GOLDEN = (5**0.5 - 1) / 2


def negative_log_likelihood(logits: NDArray[np.float32], classes: NDArray[np.int64], temperature: float) -> float:
    """Mean negative log likelihood of the true classes (n,) under softmax(logits (n, c) / temperature)."""
    scaled = logits.astype(np.float64) / temperature
    scaled -= scaled.max(axis=1, keepdims=True)
    of_class = np.take_along_axis(scaled, classes[:, None], axis=1)[:, 0]
    return float((np.log(np.exp(scaled).sum(axis=1)) - of_class).mean())


def fit_temperature(logits: NDArray[np.float32], classes: NDArray[np.int64]) -> float:
    """Return the temperature of least negative log likelihood, by golden-section search over its logarithm.

    The loss is convex in 1 / temperature, so it has one minimum. logits: (n, c); classes: (n,).
    """
    low, high = np.log(LOWEST), np.log(HIGHEST)
    while high - low > PRECISION:
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if negative_log_likelihood(logits, classes, np.exp(left)) < negative_log_likelihood(
            logits, classes, np.exp(right)
        ):
            high = right
        else:
            low = left
    return float(np.exp((low + high) / 2))
