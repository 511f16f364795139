"""Animated WebP files for tests, built chunk by chunk."""

from __future__ import annotations

import numpy as np

from tests.unit.image.files import canvas, encoded, riff, webp_chunk

ANIMATED, EXIF = 0x02, 0x08
BACKGROUND = webp_chunk(b"ANIM", bytes((9, 99, 199, 255, 0, 0)))


def frame(bgr: np.ndarray, left: int = 0, top: int = 0, before: bytes = b"", **sizes: int) -> bytes:
    """One frame of an animation: place and size, 100 ms, no blending, then its picture."""
    height, width = bgr.shape[:2]
    numbers = (left // 2, top // 2, sizes.get("width", width) - 1, sizes.get("height", height) - 1, 100)
    head = b"".join(number.to_bytes(3, "little") for number in numbers) + b"\x02"
    return webp_chunk(b"ANMF", head + before + encoded(".webp", bgr)[12:])


def animation(width: int, height: int, *frames: bytes, flags: int = ANIMATED, after: bytes = b"") -> bytes:
    return riff(canvas(width, height, flags) + BACKGROUND + b"".join(frames) + after)
