"""Brings every feature to the range that it had on the training photographs, so that none dominates the distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Scaling:
    """Min-max scaling (Taylor et al., section 3.4.2): the training minimum becomes 0, the training maximum 1.

    A feature that was constant in training becomes 0 for every photograph: nothing is known of its scale. Values that
    training did not see may fall outside 0 to 1; they are not clipped, as in the paper, since how far outside a
    photograph lies is what its distance to the neighbours tells.
    """

    def __init__(self, minimum: NDArray[np.float32], maximum: NDArray[np.float32]) -> None:
        """Keep the range of each feature: minimum and maximum are (features,), finite. Raises ValueError otherwise."""
        self.minimum = np.asarray(minimum, np.float32)
        self.maximum = np.asarray(maximum, np.float32)
        if self.minimum.ndim != 1 or self.minimum.shape != self.maximum.shape:
            raise ValueError(f"minimum {self.minimum.shape} and maximum {self.maximum.shape} must both be (features,)")
        if not (np.isfinite([self.minimum, self.maximum]).all() and (self.minimum <= self.maximum).all()):
            raise ValueError("minimum and maximum must be finite, and no minimum above its maximum")
        # float64, so that the difference of two float32 values does not overflow and the maximum becomes exactly 1
        span = np.subtract(self.maximum, self.minimum, dtype=np.float64)
        self._divisor = np.where(span > 0, span, np.inf)

    def apply(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the scaled features, float32; features: (features,) or (photographs, features) float32."""
        above = np.subtract(features, self.minimum, dtype=np.float64)
        return (above / self._divisor).astype(np.float32)


def fit_scaling(features: NDArray[np.float32]) -> Scaling:
    """Read the range of each feature from the training photographs.

    features: (photographs, features) float32, at least one photograph, finite. Raises ValueError otherwise.
    """
    features = np.asarray(features, np.float32)
    if features.ndim != 2 or len(features) == 0:
        raise ValueError(f"features must be (photographs, features) with at least one photograph, not {features.shape}")
    return Scaling(features.min(axis=0), features.max(axis=0))
