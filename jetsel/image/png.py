"""Read a PNG's size and check every chunk of it, before anything is decoded (PNG, third edition, section 5)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from jetsel.image import exif, png_pixels
from jetsel.image.header import MAX_SEGMENTS, Header, Still, damaged, truncated
from jetsel.image.limits import Limits
from jetsel.image.png_pixels import Layout, check_amount, layout_in

KIND = png_pixels.KIND
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER_BYTES = 13
_HEADER_END = len(SIGNATURE) + 8 + _HEADER_BYTES + 4
_END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))
_ANCILLARY = 0x20  # a bit of a name's first letter, lower case: what a decoder may pass over (5.4)


def read(data: memoryview, limits: Limits) -> Header:
    """Return the size and orientation of a whole PNG whose checksums hold; what follows IEND is not looked at.

    What the picture does not need is left out of what is decoded: libpng unpacks a thousand texts of 8 MB each that
    take 8 KB each in the file, and says on stderr what is wrong with one. So of an animation the default image is
    decoded, which viewers without animation show, whatever OpenCV's version makes of one.
    Raises BadImageError (truncated, damaged) and ImageTooLargeError.
    """
    layout: Layout | None = None
    orientation, is_plain = exif.UPRIGHT, True
    kept: list[memoryview] = []
    pixels: list[memoryview] = []
    for name, content, chunk in _chunks(data):
        if (layout is None) != (name == b"IHDR"):
            raise damaged(KIND, "its header (IHDR) is not its first chunk, or not the only one")
        if layout is None:
            layout = layout_in(content, limits)
            kept.append(chunk)
        elif name == b"IDAT":
            pixels.append(content)
            kept.append(chunk)
        elif name == b"PLTE" and layout.has_palette:
            kept.append(chunk)
        else:
            is_plain = False
            if name == b"eXIf":
                orientation = exif.orientation_of(content)
            elif not (name.isalpha() and (name[0] & _ANCILLARY or name == b"PLTE")):
                raise damaged(KIND, f"it has a chunk {name!r}, which no PNG may have")
    if layout is None or not pixels:
        raise damaged(KIND, "it holds no picture")
    check_amount(pixels, layout)
    still = None
    if not is_plain:
        still = Still(b"".join((SIGNATURE, *kept, _END)), 0, 0, layout.width, layout.height)
    return Header(layout.width, layout.height, orientation, still)


def size(data: memoryview) -> tuple[int, int]:
    """Return width and height from the header chunk, which is the first; raises BadImageError (truncated, damaged)."""
    if len(data) < _HEADER_END:
        raise truncated(KIND, "inside its header")
    length, name, width, height = struct.unpack_from(">I4sII", data, len(SIGNATURE))
    if name != b"IHDR":
        raise damaged(KIND, "its header (IHDR) is not its first chunk")
    if length != _HEADER_BYTES:
        raise damaged(KIND, f"its header has {length} bytes instead of {_HEADER_BYTES}")
    return width, height


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview, memoryview]]:
    """Yield name and content of each chunk before IEND, and the whole chunk.

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
        yield name, data[at + 8 : end], data[at : end + 4]
        at = end + 4
    raise damaged(KIND, f"it has more than {MAX_SEGMENTS} chunks")
