"""From pixels to a JPEG file, for a model that is elsewhere."""

from __future__ import annotations

import cv2
import numpy as np

QUALITY = 92  # 1 to 2 bits a pixel of photographs


def smaller_size(width_px: int, height_px: int, shorter_px: int) -> tuple[int, int]:
    """Return width and height with this shorter side; as they are where that is not longer."""
    scale = shorter_px / min(width_px, height_px)
    if scale >= 1:
        return width_px, height_px
    return max(1, round(width_px * scale)), max(1, round(height_px * scale))


def jpeg(bgr: np.ndarray, shorter_px: int | None = None, quality: int = QUALITY) -> bytes:
    """Return (height, width, 3) uint8 as a JPEG, reduced by area to this shorter side where it is longer."""
    height_px, width_px = bgr.shape[:2]
    size = (width_px, height_px) if shorter_px is None else smaller_size(width_px, height_px, shorter_px)
    if size != (width_px, height_px):
        bgr = cv2.resize(bgr, size, interpolation=cv2.INTER_AREA)
    encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return encoded.tobytes()
