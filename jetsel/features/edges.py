"""Where a photograph changes abruptly: keypoints, and the lengths and angles of its edges."""

from __future__ import annotations

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
    """Return (7,) shares of the edge pixels whose edge runs at each angle; all zeros where there are no edges.

    The angle is that of the edge (across the gradient), anticlockwise from the x axis, modulo 180 degrees.
    """
    on_edge = edges.ravel().nonzero()[0]
    if not on_edge.size:
        return np.zeros(BINS)
    x, y = along_x.ravel()[on_edge], along_y.ravel()[on_edge]  # y points down, so (y, x) runs along the edge
    angles = np.degrees(np.arctan2(x, y, dtype=np.float32))
    bins = ((angles - ANGLE_START_DEGREES) % 180.0 / ANGLE_BIN_DEGREES).astype(np.intp)
    return np.bincount(bins % BINS, minlength=BINS) / on_edge.size  # rounding may give 180.0, which is 0
