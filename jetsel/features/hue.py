"""Which colours a photograph has: the shares of its pixels in seven ranges of hue."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

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
