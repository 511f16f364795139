"""The working resolution: an image shrunk to this number of pixels at most, which is what every feature is computed on.

4096, unless a calibration says otherwise, is what the starter family's calibration images have. A count of keypoints or
the length of an edge depends on the resolution, so a large photograph is brought to theirs before its neighbours among
them mean anything; and it bounds what the features cost. A number of pixels rather than a shorter side: at equal area
the counts of a 4:3 photograph and its square copy agree, and a panorama costs no more.

By halves, since averaging 2 x 2 pixels is vectorised while INTER_AREA by a fractional factor costs several times as
much. Only the last step, by less than two, is bilinear: every pixel still counts, so nothing aliases.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

WORKING_PX = 64 * 64
"""The working resolution unless a calibration says another."""


def working_size(height_px: int, width_px: int, working_px: int = WORKING_PX) -> tuple[int, int]:
    """Return (height, width) in pixels: the same proportions but for rounding, at most working_px, never enlarged.

    Both sides are at least 1: a photograph so long that its shorter side would vanish gives up its proportions instead
    (1 x 20000 becomes 1 x 4096).
    """
    if height_px * width_px <= working_px:
        return height_px, width_px
    short, long = sorted((height_px, width_px))
    scale = math.sqrt(working_px / (height_px * width_px))
    new_short = max(1, round(short * scale))
    new_long = min(round(long * scale), working_px // new_short)
    return (new_short, new_long) if height_px <= width_px else (new_long, new_short)


def shrink(bgr: NDArray[np.uint8], working_px: int = WORKING_PX) -> NDArray[np.uint8]:
    """Return the photograph (height, width, 3) uint8 at its working size; itself if that is its size already.

    Halving drops the last row or column of an odd side: at most one pixel in 64 of the working photograph.
    """
    height, width = working_size(bgr.shape[0], bgr.shape[1], working_px)
    while bgr.shape[0] >= 2 * height and bgr.shape[1] >= 2 * width:
        half = bgr.shape[0] // 2, bgr.shape[1] // 2
        whole = bgr[: 2 * half[0], : 2 * half[1]]
        bgr = np.asarray(cv2.resize(whole, half[::-1], interpolation=cv2.INTER_AREA), np.uint8)
    if bgr.shape[:2] == (height, width):
        return bgr
    return np.asarray(cv2.resize(bgr, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)
