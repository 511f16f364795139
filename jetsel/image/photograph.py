"""A photograph as every later stage sees it: upright 8-bit BGR pixels, and the size that the original had."""

from __future__ import annotations

import numpy as np
from msgspec import Struct


class Photograph(Struct, frozen=True, eq=False):
    """One decoded photograph.

    bgr: (height, width, 3) uint8, C-contiguous, EXIF orientation applied; smaller than the original where a large JPEG
    was decoded at reduced scale. It may be a read-only view of raw pixels that the caller sent: never write to it.
    width_px, height_px: the original's size, after orientation.
    """

    bgr: np.ndarray
    width_px: int
    height_px: int
