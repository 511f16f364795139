"""Read a PNG's size and check every chunk of it, before anything is decoded (PNG, third edition, section 5)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from jetsel.errors import BadImageError
from jetsel.image import exif
from jetsel.image.header import MAX_SEGMENTS, Header, damaged, truncated
from jetsel.image.limits import Limits, check_pixels

KIND = "PNG"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ANIMATION = (b"acTL", b"fcTL", b"fdAT")


def read(data: memoryview, limits: Limits) -> Header:
    """Return the size and orientation of a whole PNG whose checksums hold; what follows IEND is not looked at.

    Raises BadImageError (truncated, damaged, animated) and ImageTooLargeError.
    """
    size: tuple[int, int] | None = None
    orientation, has_pixels = exif.UPRIGHT, False
    for name, content in _chunks(data):
        if (size is None) != (name == b"IHDR"):
            raise damaged(KIND, "its header (IHDR) is not its first chunk, or not the only one")
        if name == b"IHDR":
            size = _size(content, limits)
        elif name == b"eXIf":
            orientation = exif.orientation_of(content)
        elif name in _ANIMATION:
            raise BadImageError("the PNG is an animation; send one frame of it as a still image")
        has_pixels |= name == b"IDAT"
    if size is None or not has_pixels:
        raise damaged(KIND, "it holds no picture")
    return Header(*size, orientation)


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield name and content of each chunk before IEND.

    The size is yielded, and so checked against the limits, before the rest of the file is looked at. Checksums are
    compared here because libpng answers a wrong one with a line on stderr, and some versions with half a picture.
    """
    at = len(SIGNATURE)
    for _ in range(MAX_SEGMENTS):
        if at + 8 > len(data):
            raise truncated(KIND, "before its last chunk (IEND)")
        length, name = struct.unpack_from(">I4s", data, at)
        end = at + 8 + length
        if end + 4 > len(data):
            raise truncated(KIND, "inside a chunk")
        (checksum,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(data[at + 4 : end]) != checksum:
            raise damaged(KIND, f"the checksum of a chunk {name!r} is wrong")
        if name == b"IEND":
            return
        yield name, data[at + 8 : end]
        at = end + 4
    raise damaged(KIND, f"it has more than {MAX_SEGMENTS} chunks")


def _size(content: memoryview, limits: Limits) -> tuple[int, int]:
    if len(content) != 13:
        raise damaged(KIND, f"its header has {len(content)} bytes instead of 13")
    width, height = struct.unpack_from(">II", content)
    check_pixels(width, height, limits)
    return width, height
