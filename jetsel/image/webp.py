"""Read a WebP's size, of canvas and frame, and check that all of it is there, before it is decoded (RFC 9649)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from jetsel.errors import BadImageError
from jetsel.image import exif
from jetsel.image.header import MAX_SEGMENTS, Header, damaged, truncated
from jetsel.image.limits import Limits, check_pixels

KIND = "WebP"
_ANIMATED = 0x02  # a flag of VP8X
_CANVAS_BYTES = 10
_LOSSY_START = b"\x9d\x01\x2a"
_LOSSLESS_START = 0x2F
_SIDE_MASK = 0x3FFF  # frames state their sides in 14 bits


def read(data: memoryview, limits: Limits) -> Header:
    """Return the size and orientation of a whole WebP; what follows its RIFF container is not looked at.

    Raises BadImageError (truncated, damaged, animated) and ImageTooLargeError.
    """
    canvas: tuple[int, int] | None = None
    frame: tuple[int, int] | None = None
    orientation = exif.UPRIGHT
    for name, content in _chunks(data):
        if name == b"VP8X":
            canvas = _canvas(content, limits)
        elif name in (b"VP8 ", b"VP8L") and frame is None:
            frame = _lossy_size(content) if name == b"VP8 " else _lossless_size(content)
            check_pixels(*frame, limits)
            if canvas not in (None, frame):
                raise damaged(KIND, f"its canvas is {canvas} pixels and its picture {frame}")
        elif name == b"EXIF":
            has_prefix = content[: len(exif.PREFIX)] == exif.PREFIX
            orientation = exif.orientation_of(content[len(exif.PREFIX) :] if has_prefix else content)
    if frame is None:
        raise damaged(KIND, "it holds no picture")
    return Header(*frame, orientation)


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield name and content of each chunk; what is missing is reported last, so that a bomb is named as one."""
    if len(data) < 20:
        raise truncated(KIND, "inside its header")
    end = 8 + struct.unpack_from("<I", data, 4)[0]
    at = 12
    for _ in range(MAX_SEGMENTS):
        if at + 8 > min(end, len(data)):
            break
        name, length = struct.unpack_from("<4sI", data, at)
        yield name, data[at + 8 : at + 8 + length]
        at += 8 + length
        if at > end:
            raise damaged(KIND, "a chunk is longer than the file says it is")
        at += length % 2  # chunks begin at even places
    if end > len(data):
        raise truncated(KIND, f"after {len(data)} of {end} bytes")


def _canvas(content: memoryview, limits: Limits) -> tuple[int, int]:
    if len(content) < _CANVAS_BYTES:
        raise truncated(KIND, "inside its canvas header")
    width = 1 + int.from_bytes(content[4:7], "little")
    height = 1 + int.from_bytes(content[7:10], "little")
    check_pixels(width, height, limits)
    if content[0] & _ANIMATED:
        raise BadImageError("the WebP is an animation; send one frame of it as a still image")
    return width, height


def _lossy_size(content: memoryview) -> tuple[int, int]:
    """Return width and height of a VP8 frame (RFC 6386, section 9.1)."""
    if len(content) < 10:
        raise truncated(KIND, "inside its frame header")
    if content[0] & 1 or content[3:6] != _LOSSY_START:
        raise damaged(KIND, "its picture is no VP8 key frame")
    width, height = struct.unpack_from("<HH", content, 6)
    return width & _SIDE_MASK, height & _SIDE_MASK


def _lossless_size(content: memoryview) -> tuple[int, int]:
    """Return width and height of a VP8L frame (RFC 9649, section 3.4)."""
    if len(content) < 5:
        raise truncated(KIND, "inside its frame header")
    if content[0] != _LOSSLESS_START:
        raise damaged(KIND, "its picture is no VP8L frame")
    (bits,) = struct.unpack_from("<I", content, 1)
    return 1 + (bits & _SIDE_MASK), 1 + (bits >> 14 & _SIDE_MASK)
