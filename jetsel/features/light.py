"""How bright a photograph is, to a camera and to an eye."""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

# Weights of blue, green and red in the HSP colour model (D. R. Finley, "HSP Color Model", alienryderflex.com/hsp.html):
# those of ITU-R BT.601, applied to squares.
PERCEIVED_WEIGHTS = np.array([[0.114, 0.587, 0.299]], np.float32)


class Moments(NamedTuple):
    """Mean and (population) standard deviation of a plane, in its own unit."""

    mean: float
    deviation: float

    @property
    def rms(self) -> float:
        """Root of the mean of the squares: sqrt(mean^2 + deviation^2)."""
        return math.hypot(self.mean, self.deviation)


def moments(plane: NDArray[np.uint8] | NDArray[np.float32]) -> Moments:
    """Return mean and deviation over all pixels of plane: (height, width)."""
    mean, deviation = cv2.meanStdDev(plane)
    return Moments(float(mean[0, 0]), float(deviation[0, 0]))


def perceived_brightness(bgr: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return (height, width) float32, 0 to 255: sqrt(0.299 R^2 + 0.587 G^2 + 0.114 B^2) of every pixel."""
    squares = cv2.multiply(bgr, bgr, dtype=cv2.CV_32F)
    plane = cv2.sqrt(cv2.transform(squares, PERCEIVED_WEIGHTS))
    return np.asarray(plane, np.float32)
