"""A photograph as the features see it: everything that two of them share, computed at most once."""

from __future__ import annotations

from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel.features.edges import angle_shares, count_keypoints, find_edges, gradients, length_shares
from jetsel.features.hue import hue_shares
from jetsel.features.light import Moments, moments, perceived_brightness
from jetsel.features.main_object import MainObject, find_main_object
from jetsel.features.shrink import WORKING_PX, shrink


class View:
    """A photograph and what is derived from it, each computed at most once and only if asked for."""

    def __init__(self, bgr: NDArray[np.uint8], working_px: int = WORKING_PX) -> None:
        """Keep bgr: (height, width, 3) uint8, blue first, at least 1 x 1; it is not written to.

        working_px: how many pixels the features see at most.

        Raises ValueError where it is something else.
        """
        if bgr.dtype != np.uint8 or bgr.ndim != 3 or bgr.shape[2] != 3 or bgr.size == 0:
            raise ValueError(
                f"a photograph is an array (height, width, 3) of uint8 in BGR order, at least 1 x 1; "
                f"this one is {bgr.shape} of {bgr.dtype}: convert it first (cv2.cvtColor, astype)"
            )
        self.bgr = bgr
        self.working_px = working_px

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
