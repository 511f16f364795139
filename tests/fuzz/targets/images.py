"""A whole image file, decoded: what any peer may send as frame two."""

import random
from collections.abc import Callable

import numpy as np

from jetsel.base.errors import JetselError
from jetsel.image import Limits, decode, from_pixels, measure
from jetsel.wire import Pixels
from tests.unit.image.mutants import put_right

MAX_BYTES = 4096
LIMITS = Limits(max_bytes=1_000_000, max_pixels=1_000_000)
FORMATS = ("bgr8", "rgb8", "gray8", "nv12")

WORDS = (
    *(b"\xff" + bytes((marker,)) for marker in (0xC0, 0xC2, 0xC4, 0xD8, 0xD9, 0xDA, 0xE1, 0xEE)),
    *(b"IHDR", b"IDAT", b"IEND", b"eXIf", b"acTL", b"fcTL", b"fdAT", b"PLTE", b"iCCP", b"Exif\0\0", b"MM\0*", b"II*\0"),
    *(b"RIFF", b"WEBP", b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"EXIF"),
)

__all__ = ["MAX_BYTES", "WORDS", "mutation", "run"]


def mutation(plain: Callable[[bytes, int], bytes]) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator that mostly puts right what else hides a change: a PNG's checksums, a WebP's length.

    plain: the fuzzer's own, of bytes.
    """
    return lambda data, max_bytes, seed: put_right(plain(data, max_bytes), random.Random(seed))


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
