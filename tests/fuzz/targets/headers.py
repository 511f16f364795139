"""The headers of an image file, without its pixels: what is read of one before it is let in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from jetsel.errors import JetselError
from jetsel.image import Limits
from jetsel.image.formats import format_of
from jetsel.image.measure import measure
from tests.fuzz.mutations import image_mutation as mutation
from tests.fuzz.pictures import files

MAX_BYTES = 4096
LIMITS = Limits(max_bytes=1_000_000, max_pixels=1_000_000)
WHOLE = 65_536  # pixels of a side that are needed: no JPEG is made smaller
WORDS = (
    *(b"\xff" + bytes((marker,)) for marker in (0xC0, 0xC2, 0xC4, 0xD8, 0xD9, 0xDA, 0xE1, 0xEE)),
    *(b"IHDR", b"IDAT", b"IEND", b"eXIf", b"acTL", b"fcTL", b"fdAT", b"PLTE", b"iCCP", b"Exif\0\0", b"MM\0*", b"II*\0"),
    *(b"RIFF", b"WEBP", b"VP8 ", b"VP8L", b"VP8X", b"ANIM", b"ANMF", b"ALPH", b"EXIF", b"BM"),
)

__all__ = ["MAX_BYTES", "WORDS", "mutation", "run", "seeds"]


def run(data: bytes) -> None:
    """What is accepted states sides within the limits, one of eight orientations, and no more than was measured."""
    view = memoryview(data)
    measured = 0
    with contextlib.suppress(JetselError):
        measured = measure(view, None, LIMITS, WHOLE).pixels
        assert 1 <= measured <= LIMITS.max_pixels
    _, read = format_of(view)
    header = read(view, LIMITS)
    assert 1 <= header.width * header.height <= measured
    assert 1 <= header.orientation <= 8


def seeds() -> Iterator[bytes]:
    yield from files()
