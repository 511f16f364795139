"""The main object of a photograph, as far as a threshold finds it: its area, perimeter and proportions."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray


class MainObject(NamedTuple):
    """An outline, measured in pixels of the halved working photograph: along their outer sides, holes filled."""

    area_px: float
    perimeter_px: float
    height_px: int
    width_px: int


def _touches_most_of_border(mask: NDArray[np.uint8]) -> bool:
    ring = (mask[0], mask[-1], mask[:, 0], mask[:, -1])
    return 2 * sum(np.count_nonzero(side) for side in ring) > sum(side.size for side in ring)


def find_main_object(gray: NDArray[np.uint8]) -> MainObject:
    """Return the largest region that stands out from what lies along the photograph's border.

    gray: (height, width) uint8, the working photograph; it is halved first (an odd side rounded up), since a region's
    size and proportions need no more and there are fewer outlines to follow, and smoothed over 3 x 3 pixels. Otsu's
    threshold (1979) splits it in two. The half that holds more than half of the border is the background; at a tie the
    dark half is. Of the outlines of the other half's regions (8-connected) the one that encloses most is the object. A
    photograph of one level has no such region: it is its own main object.
    """
    height, width = (gray.shape[0] + 1) // 2, (gray.shape[1] + 1) // 2
    smooth = cv2.GaussianBlur(cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA), (3, 3), 0)
    _, split = cv2.threshold(smooth, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    mask = np.asarray(split, np.uint8)
    if _touches_most_of_border(mask):
        mask = np.asarray(cv2.bitwise_not(mask), np.uint8)
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not outlines:
        return MainObject(height * width, 2.0 * (height + width), height, width)
    outline = max(outlines, key=cv2.contourArea)
    # OpenCV's outline joins the centres of the outermost pixels. Half a pixel further out a single pixel has an area
    # and a perimeter too; the correction is exact for rectangles.
    inner_perimeter = cv2.arcLength(outline, True)
    _, _, width, height = cv2.boundingRect(outline)
    return MainObject(cv2.contourArea(outline) + inner_perimeter / 2 + 1, inner_perimeter + 4, height, width)
