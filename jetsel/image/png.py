"""Check that a PNG is whole, and leave out of it what its picture does not need (PNG, third edition, section 5).

libpng cannot be left to do either, as two hostile files show (tests/unit/image/test_bombs.py has them): it unpacks 900
texts of 8 MB each, 8 KB each in the file, in half a minute, and it unpacks and throws away the gigabytes that may
follow the last row of the picture. What is left out is never unpacked; so of an animation the default image is decoded.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress

from jetsel.image.header import orientation_of
from jetsel.image.limits import damaged, truncated

_KIND = "PNG"
_SIGNATURE_BYTES = 8
_MAX_CHUNKS = 65_536
"""Real files have under 5,000; a hostile one costs 0.1 s at most."""
_ANCILLARY = 0x20  # a bit of a name's first letter, lower case: what a decoder may pass over (5.4)
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type (11.2.1)
_STEP_BYTES = 1 << 18  # unpacked at a time, so that memory stays flat
_END = b"\0\0\0\0IEND\xae\x42\x60\x82"
_PROFILES = (b"Raw profile type exif", b"Raw profile type APP1")
"""Keywords of texts that hold EXIF, as ImageMagick writes it: a name, a length, and hexadecimal digits."""


def picture_of(data: memoryview) -> tuple[bytes, int, int]:
    """Return the file with what its picture needs alone, its EXIF orientation, and the bits a channel that sBIT states.

    The orientation is 1 to 8; the bits are 16 if the file states none. Raises BadImageError (truncated, damaged).
    """
    kept, pixels, first = [data[:_SIGNATURE_BYTES]], list[memoryview](), dict[bytes, memoryview]()
    profile = None  # of the first text that should have one: each costs as much as _STEP_BYTES
    for name, content, chunk in _chunks(data):
        first.setdefault(name, content)
        if not name[0] & _ANCILLARY:
            kept.append(chunk)
            if name == b"IDAT":
                pixels.append(content)
        elif profile is None and bytes(content[:21]) in _PROFILES:
            profile = _profile(name, bytes(content[22:_STEP_BYTES]))
    _check_amount(data, pixels)
    orientation = orientation_of(first.get(b"eXIf", profile or b""))
    return b"".join((*kept, _END)), orientation, (first.get(b"sBIT") or b"\x10")[0]


def _profile(name: bytes, text: bytes) -> bytes:
    """Return the EXIF block in a text that follows one of _PROFILES; empty if it cannot be read."""
    if name != b"tEXt":
        text = text[1:] if name == b"zTXt" else text[2:].split(b"\0", 2)[-1]  # iTXt: a language, a translated keyword
        with suppress(zlib.error):  # an iTXt need not be packed
            text = zlib.decompressobj().decompress(text, _STEP_BYTES)
    digits = b"".join(text.split()[2:])
    try:
        return bytes.fromhex(digits[: len(digits) // 2 * 2].decode("ascii"))
    except ValueError:
        return b""


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview, memoryview]]:
    """Yield name and content of each chunk before IEND, and the whole chunk; what follows IEND is not looked at.

    Checksums are compared here because libpng answers a wrong one with a line on stderr, and some versions with half a
    picture. Ancillary chunks with a wrong one are passed over.
    """
    at = _SIGNATURE_BYTES
    for _ in range(_MAX_CHUNKS):
        if at + 8 > len(data):
            raise truncated(_KIND, "before its last chunk (IEND)")
        length, name = struct.unpack_from(">I4s", data, at)
        end = at + 8 + length
        if end + 4 > len(data):
            raise truncated(_KIND, "inside a chunk")
        if name == b"IEND":
            return
        if zlib.crc32(data[at + 4 : end]) == int.from_bytes(data[end : end + 4], "big"):
            yield name, data[at + 8 : end], data[at : end + 4]
        elif not name[0] & _ANCILLARY:
            raise damaged(_KIND, f"the checksum of a chunk {name!r} is wrong")
        at = end + 4
    raise damaged(_KIND, f"it has more than {_MAX_CHUNKS} chunks")


def _check_amount(data: memoryview, pixels: list[memoryview]) -> None:
    """Raise BadImageError if the pixel chunks unpack to more than a picture of this size and kind has.

    If they unpack to less, libpng refuses the file.
    """
    width, height, depth, colour = struct.unpack_from(">IIBB", data, 16)
    # Each row begins with a byte for its filter, and may end inside a byte; interlaced rows are nearly twice as many.
    left = width * height * depth * _CHANNELS.get(colour, 4) // 8 + 4 * height + 16
    unpacking = zlib.decompressobj()
    try:
        for content in pixels:
            packed: bytes | memoryview = content
            while len(packed) and not unpacking.eof:
                left -= len(unpacking.decompress(packed, _STEP_BYTES))
                if left < 0:
                    raise damaged(_KIND, "it holds more pixels than its header gives")
                packed = unpacking.unconsumed_tail
    except zlib.error:
        raise damaged(_KIND, "its pixels cannot be unpacked, or fail their checksum") from None
    if not unpacking.eof:
        raise damaged(_KIND, "its pixels end too early")
