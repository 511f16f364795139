"""A view of a photograph: what its features are computed from, each at most once; brightness and hues of its pixels."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel.features.edges import (
    MainObject,
    angle_shares,
    count_keypoints,
    find_edges,
    find_main_object,
    gradients,
    length_shares,
)
from jetsel.features.kinds import middle
from jetsel.features.shrink import WORKING_PX, shrink

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


BINS = 7
HUES = 180  # OpenCV's 8-bit hue counts steps of two degrees

# Below these the hue of a pixel is the noise of a camera or of compression: grey, or nearly black. Of 255.
LEAST_COLOUR = np.array([0, 40, 40], np.uint8)  # hue, saturation, value
MOST_COLOUR = np.array([255, 255, 255], np.uint8)

# The six pure hues are 60 degrees apart and the seven bins 51.4 wide, so the start of the first decides how close one
# comes to a limit. This start keeps all six at least 4.2 degrees away, and red (0) in one bin instead of two.
BIN_DEGREES = 360.0 / BINS
START_DEGREES = -BIN_DEGREES * 5 / 12
_bin_of_hue = ((2 * np.arange(HUES) - START_DEGREES) % 360.0 / BIN_DEGREES).astype(np.intp)


def hue_shares(bgr: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return (7,) shares of all pixels that are coloured and of that hue; what is missing to 1 has no colour.

    A pixel is coloured if its saturation and its value (HSV) are both at least 40 of 255.
    """
    hsv = cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV)
    coloured = cv2.inRange(hsv, LEAST_COLOUR, MOST_COLOUR)
    counts = cv2.calcHist([hsv], [0], coloured, [HUES], [0, HUES]).ravel()
    return np.bincount(_bin_of_hue, weights=counts, minlength=BINS) / coloured.size


class View:
    """A photograph and what is derived from it, each computed at most once and only if asked for."""

    def __init__(
        self, bgr: NDArray[np.uint8], working_px: int = WORKING_PX, original_px: tuple[int, int] | None = None
    ) -> None:
        """Keep bgr: (height, width, 3) uint8, blue first, at least 1 x 1; it is not written to.

        working_px: how many pixels the features see at most. original_px: width and height of the image, or of the box
        in it, before it was decoded at a reduced scale; None if it was not.

        Raises ValueError if it is something else.
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
        """The photograph at its working resolution, (height, width, 3) uint8: all that follows is computed from it."""
        return shrink(np.ascontiguousarray(self.bgr), self.working_px)

    @cached_property
    def gray(self) -> NDArray[np.uint8]:
        """Grey levels (height, width) uint8: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601, as OpenCV rounds it)."""
        return np.asarray(cv2.cvtColor(self.small, cv2.COLOR_BGR2GRAY), np.uint8)

    @cached_property
    def gray_moments(self) -> Moments:
        """Mean and deviation of the grey levels."""
        return moments(self.gray)

    @cached_property
    def perceived_moments(self) -> Moments:
        """Mean and deviation of the perceived brightness."""
        return moments(perceived_brightness(self.small))

    @cached_property
    def middle(self) -> NDArray[np.float32]:
        """Grey levels of the middle of the image as it was decoded, (height, width) float32."""
        return middle(self.bgr)

    @cached_property
    def n_keypoints(self) -> int:
        """How many FAST corners there are."""
        return count_keypoints(self.gray)

    @cached_property
    def gradients(self) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """Sobel responses along x and along y, each (height, width) int16."""
        return gradients(self.gray)

    @cached_property
    def edges(self) -> NDArray[np.uint8]:
        """Canny's edges, (height, width) uint8: 255 on an edge, 0 elsewhere."""
        return find_edges(*self.gradients)

    @cached_property
    def edge_lengths(self) -> NDArray[np.float64]:
        """Shares of the pixels on edges of each range of lengths, (7,)."""
        return length_shares(self.edges)

    @cached_property
    def edge_angles(self) -> NDArray[np.float64]:
        """Shares of the edge pixels at each range of angles, (7,)."""
        return angle_shares(self.edges, *self.gradients)

    @cached_property
    def main_object(self) -> MainObject:
        """The largest region that stands out from the border."""
        return find_main_object(self.gray)

    @cached_property
    def hues(self) -> NDArray[np.float64]:
        """Shares of the pixels in each range of hues, (7,)."""
        return hue_shares(self.small)
