"""What tells kinds of images apart beside their content: how colourful, how detailed and how noisy they are."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

MIDDLE_PX = 128  # side of the middle of an image that detail and noise are measured in: enough, and soon done

# Rows: red less green, and yellow less blue, of blue, green and red.
_OPPONENTS = np.array([[0, -1, 1], [-1, 0.5, 0.5]], np.float32)
_LAPLACIANS = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)


def colourfulness(bgr: NDArray[np.uint8]) -> float:
    """Return 0 for grey, about 15 for a slightly and 80 for a highly colourful image.

    Hasler and Suesstrunk, "Measuring colourfulness in natural images" (SPIE Human Vision 2003), section 7: the
    deviation in the plane of red-green and yellow-blue, and 0.3 of the distance of the mean from grey.
    """
    mean, deviation = cv2.meanStdDev(cv2.transform(bgr.astype(np.float32), _OPPONENTS))
    return math.hypot(*deviation.ravel()) + 0.3 * math.hypot(*mean.ravel())


def middle(bgr: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the grey levels of the middle of an image: (height, width) float32, at most 128 x 128."""
    top, left = (max(0, side - MIDDLE_PX) // 2 for side in bgr.shape[:2])
    window = bgr[top : top + MIDDLE_PX, left : left + MIDDLE_PX]
    return np.asarray(cv2.cvtColor(window, cv2.COLOR_BGR2GRAY), np.float32)


def detail(gray: NDArray[np.float32]) -> float:
    """Return the share of the highest octave of frequencies in the energy of the highest two; 0 if there is none.

    In natural images the energy of frequency f falls as 1 / f^2 (Field 1987), so that octaves have equal shares: one of
    half is sharp, one of less was blurred or enlarged, and noise adds to it. Octaves are Haar's: what the mean over
    2 x 2 pixels leaves out, and what the next one does.
    """
    height, width = (side // 4 * 4 for side in gray.shape)
    if not height or not width:
        return 0.0
    whole = gray[:height, :width]
    half = cv2.resize(whole, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    quarter = cv2.resize(half, (width // 4, height // 4), interpolation=cv2.INTER_AREA)
    squares = [float(cv2.norm(plane, cv2.NORM_L2SQR)) / plane.size for plane in (whole, half, quarter)]
    highest, next_one = (max(0.0, one) for one in (squares[0] - squares[1], squares[1] - squares[2]))
    return highest / (highest + next_one) if highest + next_one > 1e-2 else 0.0  # less is how float32 rounds


def noise(gray: NDArray[np.float32]) -> float:
    """Return the deviation of the noise in grey levels; 0 for an image of fewer than 3 x 3 pixels.

    Immerkaer, "Fast noise variance estimation" (CVIU 1996): the mean of the difference of two Laplacians, which edges
    hardly move.
    """
    inner = cv2.filter2D(gray, cv2.CV_32F, _LAPLACIANS)[1:-1, 1:-1]
    return math.sqrt(math.pi / 2) / 6 * float(cv2.norm(inner, cv2.NORM_L1)) / inner.size if inner.size else 0.0
