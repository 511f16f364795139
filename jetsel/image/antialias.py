"""Resize as Pillow does, and so most code that models are trained with: a kernel as wide as the pixels that it makes.

Kernels and coverage are those of Pillow's `Image.resize` (its documentation, "Filters"), which torchvision calls with
`antialias=True`. OpenCV has nothing alike: its bilinear and bicubic read 2 and 4 pixels however far they shrink.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import cv2
import numpy as np

Kernel = Literal["bilinear", "bicubic"]

_REACH = {"bilinear": 1.0, "bicubic": 2.0}  # to either side of the centre, in pixels of the coarser grid
_SHARPNESS = -0.5  # of the bicubic kernel: Pillow's; OpenCV's is -0.75


class Side(NamedTuple):
    """What happens along one side: `source_px` become `scaled_px`, of which `kept_px` are wanted from `first` on."""

    source_px: int
    scaled_px: int
    first: int
    kept_px: int


def antialiased(bgr: np.ndarray, rows: Side, columns: Side, kernel: Kernel) -> np.ndarray:
    """Return (rows.kept_px, columns.kept_px, 3) float32 levels in 0..255 from (height, width, 3) uint8.

    What no wanted pixel reads is not touched. The side that shrinks more comes first, so that memory stays near that of
    the input and the output.
    """
    if rows.kept_px * columns.source_px <= rows.source_px * columns.kept_px:
        levels = cv2.transpose(_rows(cv2.transpose(_rows(bgr, rows, kernel)), columns, kernel))
    else:
        levels = _rows(cv2.transpose(_rows(cv2.transpose(bgr), columns, kernel)), rows, kernel)
    return np.clip(levels, 0, 255)  # bicubic overshoots


def _rows(pixels: np.ndarray, side: Side, kernel: Kernel) -> np.ndarray:
    """Return (side.kept_px, width, 3) float32: each row a weighted sum of those that its kernel covers."""
    places, weights = _taps(side, kernel)
    found = np.zeros((side.kept_px, *pixels.shape[1:]), np.float32)
    for place, weight in zip(places, weights, strict=True):
        found += pixels[place] * weight[:, np.newaxis, np.newaxis]
    return found


@lru_cache(maxsize=16)  # a few kilobytes each where photographs are of a few sizes
def _taps(side: Side, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """Return which source pixels each wanted one reads, and with which weight: two arrays (taps, side.kept_px)."""
    scale = side.source_px / side.scaled_px
    width = max(scale, 1.0)  # enlarging, the kernel keeps the source's pixels
    reach = _REACH[kernel] * width
    centres = (side.first + np.arange(side.kept_px) + 0.5) * scale
    first = np.maximum((centres - reach + 0.5).astype(np.intp), 0)
    end = np.minimum((centres + reach + 0.5).astype(np.intp), side.source_px)
    places = first + np.arange((end - first).max())[:, np.newaxis]
    weights = _weight(np.abs(places + 0.5 - centres) / width, kernel)
    weights[places >= end] = 0
    weights /= weights.sum(axis=0)
    return np.minimum(places, side.source_px - 1), weights.astype(np.float32)


def _weight(distance: np.ndarray, kernel: Kernel) -> np.ndarray:
    """The kernel at these distances (R. Keys, "Cubic convolution interpolation", 1981, for the bicubic one)."""
    if kernel == "bilinear":
        triangle: np.ndarray = np.maximum(1 - distance, 0.0)
        return triangle
    a, d = _SHARPNESS, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    cubic: np.ndarray = np.where(d < 1, near, np.where(d < 2, far, 0.0))
    return cubic
