"""Where a photograph changes abruptly: keypoints, the lengths and angles of its edges, and its main object."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

BINS = 7

# Of 10, 20 and 30: counts at 30 agree best between photographs and their compressed 64 x 64 copies, few photographs
# have fewer than ten, and the fewest take the least time.
KEYPOINT_THRESHOLD = 30  # grey levels

# On the sum of the absolute 3 x 3 Sobel responses; a step of s grey levels between flat sides answers 4 s. Lower pairs
# agreed no better between photographs and their 64 x 64 copies, and more edges take more time.
WEAK_EDGE, STRONG_EDGE = 150.0, 300.0

# Doubling limits: the starter family's calibration photographs spread their edge pixels about evenly over the bins.
LENGTH_LIMITS_PX = (8, 16, 32, 64, 128, 256)
_bin_of_length = np.searchsorted(LENGTH_LIMITS_PX, np.arange(LENGTH_LIMITS_PX[-1] + 2))

# Seven bins over 180 degrees: wherever the first starts, one of 0, 45, 90 and 135 degrees, where many edges of a
# photograph lie and where gradients of small numbers fall exactly, is close to a limit. This start keeps all four at
# least 3.2 degrees away, and 0 and 135 as far as 9.6.
ANGLE_BIN_DEGREES = 180.0 / BINS
ANGLE_START_DEGREES = -ANGLE_BIN_DEGREES * 3 / 8

_detector = cv2.FastFeatureDetector.create(threshold=KEYPOINT_THRESHOLD, nonmaxSuppression=True)


def count_keypoints(gray: NDArray[np.uint8]) -> int:
    """Return how many FAST-9 corners (Rosten and Drummond 2006) are left after non-maximum suppression."""
    return len(_detector.detect(gray))


def gradients(gray: NDArray[np.uint8]) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Return the 3 x 3 Sobel responses along x and along y, each (height, width) int16."""
    along_x, along_y = cv2.spatialGradient(gray)
    return np.asarray(along_x, np.int16), np.asarray(along_y, np.int16)


def find_edges(along_x: NDArray[np.int16], along_y: NDArray[np.int16]) -> NDArray[np.uint8]:
    """Return Canny's edges of the gradients: (height, width) uint8, 255 on an edge and 0 elsewhere."""
    return np.asarray(cv2.Canny(along_x, along_y, WEAK_EDGE, STRONG_EDGE), np.uint8)


def length_shares(edges: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return (7,) shares of all pixels that lie on edges of at most 8, 16, 32, 64, 128, 256 and of more pixels.

    One edge is one 8-connected group of edge pixels; as Canny's edges are one pixel wide, its pixels are its length.
    """
    stats = cv2.connectedComponentsWithStatsWithAlgorithm(edges, 8, cv2.CV_32S, cv2.CCL_SPAGHETTI)[2]
    lengths = np.asarray(stats[1:, cv2.CC_STAT_AREA], np.intp)  # row 0 is all that is no edge
    bins = _bin_of_length.take(lengths, mode="clip")
    return np.bincount(bins, weights=lengths, minlength=BINS) / edges.size


def angle_shares(
    edges: NDArray[np.uint8], along_x: NDArray[np.int16], along_y: NDArray[np.int16]
) -> NDArray[np.float64]:
    """Return (7,) shares of the edge pixels whose edge runs at each angle; all zeros if there are no edges.

    The angle is that of the edge (across the gradient), anticlockwise from the x axis, modulo 180 degrees.
    """
    on_edge = edges.ravel().nonzero()[0]
    if not on_edge.size:
        return np.zeros(BINS)
    x, y = along_x.ravel()[on_edge], along_y.ravel()[on_edge]  # y points down, so (y, x) runs along the edge
    angles = np.degrees(np.arctan2(x, y, dtype=np.float32))
    bins = ((angles - ANGLE_START_DEGREES) % 180.0 / ANGLE_BIN_DEGREES).astype(np.intp)
    return np.bincount(bins % BINS, minlength=BINS) / on_edge.size  # rounding may give 180.0, which is 0


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
