"""The working resolution: features are computed on an image shrunk to at most this number of pixels.

The default of 4096 is the size of the starter family's calibration images. Counts of keypoints and lengths of edges
depend on the resolution, so a large image is comparable with its neighbours only at their resolution; shrinking also
bounds the time for features. The limit is a number of pixels, not a side, so that counts of a 4:3 image and its square
copy agree, and a panorama costs no more.

Images are halved first: averaging 2 x 2 pixels is vectorised, while INTER_AREA by a fractional factor takes several
times as long. Only the last step, by a factor below two, is bilinear; every pixel still counts, so nothing aliases.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

WORKING_PX = 64 * 64
"""Default of the working resolution; a calibration may set another."""


def working_size(height_px: int, width_px: int, working_px: int = WORKING_PX) -> tuple[int, int]:
    """Return (height, width) that an image is shrunk to: at most working_px pixels, proportions kept but for rounding.

    Both sides are at least 1: very long images lose their proportions (1 x 20000 becomes 1 x 4096).
    """
    if height_px * width_px <= working_px:
        return height_px, width_px
    short, long = sorted((height_px, width_px))
    scale = math.sqrt(working_px / (height_px * width_px))
    new_short = max(1, round(short * scale))
    new_long = min(round(long * scale), working_px // new_short)
    return (new_short, new_long) if height_px <= width_px else (new_long, new_short)


def shrink(bgr: NDArray[np.uint8], working_px: int = WORKING_PX) -> NDArray[np.uint8]:
    """Return the image (height, width, 3) uint8 at its working size; the same array if it has that size.

    Halving drops the last row or column of an odd side: at most one pixel in 64 of the working image.
    """
    height, width = working_size(bgr.shape[0], bgr.shape[1], working_px)
    while bgr.shape[0] >= 2 * height and bgr.shape[1] >= 2 * width:
        half = bgr.shape[0] // 2, bgr.shape[1] // 2
        whole = bgr[: 2 * half[0], : 2 * half[1]]
        bgr = np.asarray(cv2.resize(whole, half[::-1], interpolation=cv2.INTER_AREA), np.uint8)
    if bgr.shape[:2] == (height, width):
        return bgr
    return np.asarray(cv2.resize(bgr, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)
