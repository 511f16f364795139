"""Features that separate kinds of images (camera, light, size) whatever they show: colourfulness, detail, noise."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

MIDDLE_PX = 128  # side of the image's middle, in which detail and noise are measured to save time

# Columns: red minus green, and yellow minus blue. Rows: blue, green, red.
_OPPONENTS = np.array([[0, -1], [-1, 0.5], [1, 0.5]], np.float32)
_LAPLACIANS = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)


def colourfulness(bgr: NDArray[np.uint8]) -> float:
    """Return how colourful an image is: 0 for grey, about 15 for slightly and 80 for highly colourful.

    Hasler and Suesstrunk, "Measuring colourfulness in natural images" (SPIE Human Vision 2003), section 7: the
    deviation in the plane of red-green and yellow-blue, and 0.3 of the distance of the mean from grey.
    """
    mean, deviation = cv2.meanStdDev(bgr.astype(np.float32) @ _OPPONENTS)  # cv2.transform takes twice as long
    return math.hypot(*deviation.ravel()) + 0.3 * math.hypot(*mean.ravel())


def middle(bgr: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the grey levels of the middle of an image: (height, width) float32, at most 128 x 128."""
    top, left = (max(0, side - MIDDLE_PX) // 2 for side in bgr.shape[:2])
    window = bgr[top : top + MIDDLE_PX, left : left + MIDDLE_PX]
    return np.asarray(cv2.cvtColor(window, cv2.COLOR_BGR2GRAY), np.float32)


def detail(gray: NDArray[np.float32]) -> float:
    """Return a measure of sharpness: the highest octave's share of the energy of the two highest; 0 if there is none.

    In natural images the energy at frequency f falls as 1 / f^2 (Field 1987), so octaves have equal energy: a sharp
    image gives about one half, a blurred or enlarged one less, a noisy one more. The octaves are Haar's: the energy
    that averaging over 2 x 2 pixels removes, once and twice.
    """
    height, width = (side // 4 * 4 for side in gray.shape)
    if not height or not width:
        return 0.0
    whole = gray[:height, :width]
    half = cv2.resize(whole, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    quarter = cv2.resize(half, (width // 4, height // 4), interpolation=cv2.INTER_AREA)
    squares = [float(cv2.norm(plane, cv2.NORM_L2SQR)) / plane.size for plane in (whole, half, quarter)]
    highest, second = (max(0.0, energy) for energy in (squares[0] - squares[1], squares[1] - squares[2]))
    return highest / (highest + second) if highest + second > 1e-2 else 0.0  # less is float32 rounding


def noise(gray: NDArray[np.float32]) -> float:
    """Return the standard deviation of the noise in grey levels; 0 for an image smaller than 3 x 3 pixels.

    Immerkaer, "Fast noise variance estimation" (CVIU 1996): the mean of the difference of two Laplacians, on which
    edges have little effect.
    """
    inner = cv2.filter2D(gray, cv2.CV_32F, _LAPLACIANS)[1:-1, 1:-1]
    return math.sqrt(math.pi / 2) / 6 * float(cv2.norm(inner, cv2.NORM_L1)) / inner.size if inner.size else 0.0
