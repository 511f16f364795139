"""A whole image file, decoded: what any peer may send as frame two."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

from jetsel.errors import JetselError
from jetsel.image import Limits, decode, from_pixels, measure
from jetsel.wire import Pixels
from tests.fuzz.mutations import image_mutation as mutation
from tests.unit.image.files import (
    drawing,
    encoded,
    flat_jpeg,
    noise,
    png,
    png_chunk,
    tiff,
    with_app1,
)

MAX_BYTES = 4096
LIMITS = Limits(max_bytes=1_000_000, max_pixels=1_000_000)
FORMATS = ("bgr8", "rgb8", "gray8", "nv12")

WORDS = (
    *(b"\xff" + bytes((marker,)) for marker in (0xC0, 0xC2, 0xC4, 0xD8, 0xD9, 0xDA, 0xE1, 0xEE)),
    *(b"IHDR", b"IDAT", b"IEND", b"eXIf", b"acTL", b"fcTL", b"fdAT", b"PLTE", b"iCCP", b"Exif\0\0", b"MM\0*", b"II*\0"),
    *(b"RIFF", b"WEBP", b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"EXIF"),
)

__all__ = ["MAX_BYTES", "WORDS", "mutation", "run", "seeds"]


def run(data: bytes) -> None:
    """What is decoded has the size that it is said to have, no more than was measured, and the same pixels again."""
    try:
        pixels = from_pixels(data[4:], _layout(data), LIMITS)
    except JetselError:
        pass
    else:
        assert pixels.bgr.shape == (pixels.height_px, pixels.width_px, 3)
    photograph = decode(data, LIMITS, 64)
    seen = measure(memoryview(data), None, LIMITS, 64)
    height, width = photograph.bgr.shape[:2]
    assert width * height <= seen.pixels
    assert photograph.bgr.dtype == np.uint8
    assert photograph.bgr.flags.c_contiguous
    assert (width, height) in [(-(-photograph.width_px // n), -(-photograph.height_px // n)) for n in (1, 2, 4, 8)]
    assert np.array_equal(decode(data, LIMITS, 64, seen).bgr, photograph.bgr)


def _layout(data: bytes) -> Pixels:
    start = data[:4].ljust(4, b"\0")
    return Pixels(FORMATS[start[0] % 4], start[1], start[2], start[3])


def seeds() -> Iterator[bytes]:
    """One of each kind, drawn; the corpus has the others."""
    bgr, small = drawing(24, 17), noise(8, 6)
    yield encoded(".jpg", bgr)
    yield encoded(".jpg", bgr, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    yield with_app1(flat_jpeg(4), b"Exif\0\0" + tiff(6))
    yield png(8, 1, 1, 3, b"\0\xf0", before=png_chunk(b"PLTE", bytes(6)) + png_chunk(b"eXIf", tiff(8, "<")))
    yield encoded(".webp", small)
    yield bytes((3, 4, 2, 4)) + bytes(12)  # raw pixels
