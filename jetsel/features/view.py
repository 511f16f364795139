"""A view of an image: its brightness, hues, edges and main object, each computed from its pixels at most once."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel.features.kinds import middle
from jetsel.features.shrink import WORKING_PX, shrink

BINS = 7  # for hues, and for the lengths and angles of edges

# Weights of blue, green and red in the HSP colour model (D. R. Finley, "HSP Color Model", alienryderflex.com/hsp.html):
# those of ITU-R BT.601, applied to squares.
PERCEIVED_WEIGHTS = np.array([[0.114, 0.587, 0.299]], np.float32)

HUES = 180  # OpenCV's 8-bit hue counts steps of two degrees

# Below these values, of 255, a pixel is grey or nearly black, and its hue is noise.
LEAST_COLOUR = np.array([0, 40, 40], np.uint8)  # hue, saturation, value
MOST_COLOUR = np.array([255, 255, 255], np.uint8)

# The six pure hues are 60 degrees apart and the seven bins 51.4 wide, so the start of the first bin decides how close a
# hue comes to a limit. This start keeps all six at least 4.2 degrees away, and red (0) in one bin instead of two.
BIN_DEGREES = 360.0 / BINS
START_DEGREES = -BIN_DEGREES * 5 / 12
_bin_of_hue = ((2 * np.arange(HUES) - START_DEGREES) % 360.0 / BIN_DEGREES).astype(np.intp)

# Limits of the sum of absolute 3 x 3 Sobel responses; a step of s grey levels gives 4 s. Lower pairs of limits
# agreed no better between images and their 64 x 64 copies, and more edges take more time.
WEAK_EDGE, STRONG_EDGE = 150.0, 300.0

# Limits double, so that edge pixels of the starter family's calibration images spread about evenly over the bins.
LENGTH_LIMITS_PX = (8, 16, 32, 64, 128, 256)
_bin_of_length = np.searchsorted(LENGTH_LIMITS_PX, np.arange(LENGTH_LIMITS_PX[-1] + 2))

# Seven bins over 180 degrees: wherever the first starts, one of 0, 45, 90 and 135 degrees, where many edges of an
# image lie and where gradients of small numbers fall exactly, is close to a limit. This start keeps all four at
# least 3.2 degrees away, and 0 and 135 as far as 9.6.
ANGLE_BIN_DEGREES = 180.0 / BINS
ANGLE_START_DEGREES = -ANGLE_BIN_DEGREES * 3 / 8


class Moments(NamedTuple):
    """Mean and (population) standard deviation of a plane of pixels."""

    mean: float
    deviation: float


def moments(plane: NDArray[np.uint8] | NDArray[np.float32]) -> Moments:
    """Return mean and deviation over all pixels of a plane: (height, width)."""
    mean, deviation = cv2.meanStdDev(plane)
    return Moments(float(mean[0, 0]), float(deviation[0, 0]))


def hue_shares(bgr: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the share of all pixels that are coloured with a hue in each of seven bins, (7,), see `table.hue`."""
    hsv = cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV)
    coloured = cv2.inRange(hsv, LEAST_COLOUR, MOST_COLOUR)
    counts = cv2.calcHist([hsv], [0], coloured, [HUES], [0, HUES]).ravel()
    return np.bincount(_bin_of_hue, weights=counts, minlength=BINS) / coloured.size


def length_shares(edges: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the share of all pixels on edges of a length in each of seven bins, (7,), see `table.edge_length`."""
    stats = cv2.connectedComponentsWithStatsWithAlgorithm(edges, 8, cv2.CV_32S, cv2.CCL_SPAGHETTI)[2]
    lengths = np.asarray(stats[1:, cv2.CC_STAT_AREA], np.intp)  # row 0 is the background; edges are one pixel wide
    bins = _bin_of_length.take(lengths, mode="clip")
    return np.bincount(bins, weights=lengths, minlength=BINS) / edges.size


def angle_shares(
    edges: NDArray[np.uint8], along_x: NDArray[np.int16], along_y: NDArray[np.int16]
) -> NDArray[np.float64]:
    """Return the share of the edge pixels with an angle in each of seven bins, (7,). along_x, along_y: the gradient."""
    on_edge = edges.ravel().nonzero()[0]
    x, y = along_x.ravel()[on_edge], along_y.ravel()[on_edge]  # an edge runs across the gradient; y points down
    angles = np.degrees(np.arctan2(x, y, dtype=np.float32))
    bins = ((angles - ANGLE_START_DEGREES) % 180.0 / ANGLE_BIN_DEGREES).astype(np.intp)
    return np.bincount(bins % BINS, minlength=BINS) / max(1, on_edge.size)  # rounding may give 180.0, which is 0


class MainObject(NamedTuple):
    """Size of the main object (see `find_main_object`) with holes filled, in pixels of the halved working image."""

    area_px: float
    perimeter_px: float
    height_px: int
    width_px: int


def _touches_most_of_border(mask: NDArray[np.uint8]) -> bool:
    """Return whether more than half of the mask's border pixels are set."""
    ring = (mask[0], mask[-1], mask[:, 0], mask[:, -1])
    return 2 * sum(np.count_nonzero(side) for side in ring) > sum(side.size for side in ring)


def find_main_object(gray: NDArray[np.uint8]) -> MainObject:
    """Return the largest region that differs from the image's border.

    gray: (height, width) uint8, the working image. It is halved (odd sides round up), since size and proportions need
    no more, and smoothed over 3 x 3 pixels. Otsu's threshold (1979) splits it in two. The half with more than half of
    the border is the background; at a tie the dark half is. Of the outlines of the other half's regions (8-connected),
    the one that encloses most is the object. If the image has one grey level only, the object is the whole image.
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
    # OpenCV's outline joins the centres of the outermost pixels. Half a pixel further out, a single pixel has an area
    # and a perimeter too; the correction is exact for rectangles.
    inner_perimeter = cv2.arcLength(outline, True)
    _, _, width, height = cv2.boundingRect(outline)
    return MainObject(cv2.contourArea(outline) + inner_perimeter / 2 + 1, inner_perimeter + 4, height, width)


class View:
    """An image and the values derived from it, each computed at most once and only if needed."""

    def __init__(
        self, bgr: NDArray[np.uint8], working_px: int = WORKING_PX, original_px: tuple[int, int] | None = None
    ) -> None:
        """Keep bgr, (height, width, 3) uint8, at least 1 x 1, which is only read.

        working_px: largest number of pixels for features. original_px: width and height of the image, or of the box in
        it, before it was decoded at a reduced scale; None if it was not. Raises ValueError for another kind of array.
        """
        if bgr.dtype != np.uint8 or bgr.ndim != 3 or bgr.shape[2] != 3 or bgr.size == 0:
            raise ValueError(
                f"an image is an array (height, width, 3) of uint8 in BGR order, at least 1 x 1; "
                f"this one is {bgr.shape} of {bgr.dtype}: convert it first (cv2.cvtColor, astype)"
            )
        self.bgr = bgr
        self.working_px = working_px
        width_px, height_px = original_px or (bgr.shape[1], bgr.shape[0])
        self.width_px, self.height_px = width_px, height_px

    @cached_property
    def small(self) -> NDArray[np.uint8]:
        """The image at its working resolution, (height, width, 3) uint8; most features are computed from it."""
        return shrink(np.ascontiguousarray(self.bgr), self.working_px)

    @cached_property
    def gray(self) -> NDArray[np.uint8]:
        """Grey levels (height, width) uint8: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601, as OpenCV rounds it)."""
        return np.asarray(cv2.cvtColor(self.small, cv2.COLOR_BGR2GRAY), np.uint8)

    @cached_property
    def gray_moments(self) -> Moments:
        """Mean and standard deviation of the grey levels."""
        return moments(self.gray)

    @cached_property
    def perceived_moments(self) -> Moments:
        """Mean and deviation of the perceived brightness, sqrt(0.299 R^2 + 0.587 G^2 + 0.114 B^2), 0 to 255."""
        squares = cv2.multiply(self.small, self.small, dtype=cv2.CV_32F)
        return moments(np.asarray(cv2.sqrt(cv2.transform(squares, PERCEIVED_WEIGHTS)), np.float32))

    @cached_property
    def middle(self) -> NDArray[np.float32]:
        """Grey levels of the middle of the decoded image, at full resolution, (height, width) float32."""
        return middle(self.bgr)

    @cached_property
    def gradients(self) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """3 x 3 Sobel responses along x and along y, each (height, width) int16."""
        along_x, along_y = cv2.spatialGradient(self.gray)
        return np.asarray(along_x, np.int16), np.asarray(along_y, np.int16)

    @cached_property
    def edges(self) -> NDArray[np.uint8]:
        """Canny's edges of the gradients, (height, width) uint8: 255 on an edge, 0 elsewhere."""
        return np.asarray(cv2.Canny(*self.gradients, WEAK_EDGE, STRONG_EDGE), np.uint8)

    @cached_property
    def edge_lengths(self) -> NDArray[np.float64]:
        """Share of all pixels on edges of a length in each of seven bins, (7,)."""
        return length_shares(self.edges)

    @cached_property
    def edge_angles(self) -> NDArray[np.float64]:
        """Share of the edge pixels with an angle in each of seven bins, (7,)."""
        return angle_shares(self.edges, *self.gradients)

    @cached_property
    def main_object(self) -> MainObject:
        """The largest region that differs from the image's border."""
        return find_main_object(self.gray)

    @cached_property
    def hues(self) -> NDArray[np.float64]:
        """Share of all pixels with a hue in each of seven bins, (7,)."""
        return hue_shares(self.small)
