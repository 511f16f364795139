"""What of a frame is sent: a region of it, and no more bytes than the daemon takes."""

from __future__ import annotations

import cv2
import numpy as np

from jetsel.base.errors import ConfigError


class Region:
    """x, y, width, height: shares of the frame, from 0 to 1, so that they hold when a camera changes its resolution."""

    def __init__(self, text: str | None) -> None:
        """Read X,Y,W,H; None: the whole frame. Raises ConfigError with an example."""
        try:
            x, y, width, height = (float(part) for part in ("0,0,1,1" if text is None else text).split(","))
        except ValueError:
            x = y = width = height = -1.0
        if not (0 <= x < x + width <= 1 and 0 <= y < y + height <= 1):
            raise ConfigError(f"region {text}: use X,Y,W,H as shares of the frame: 0.5,0,0.5,1 is its right half")
        self._shares = x, y, width, height

    def of(self, frame: np.ndarray) -> np.ndarray:
        """Return the region of a frame (height, width[, 3]), one pixel at least; a view."""
        x, y, width, height = self._shares
        high, wide = frame.shape[:2]
        left, top = min(int(x * wide), wide - 1), min(int(y * high), high - 1)
        right, bottom = max(round((x + width) * wide), left + 1), max(round((y + height) * high), top + 1)
        return frame[top:bottom, left:right]


def fitting(frame: np.ndarray, max_image_mb: float) -> np.ndarray:
    """Return the frame, halved until its raw pixels are no more than the daemon takes."""
    while frame.nbytes > max_image_mb * 1e6:
        frame = cv2.resize(frame, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    return frame
