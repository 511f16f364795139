"""Read a WebP's size, of canvas and frame, and check that all of it is there, before it is decoded (RFC 9649)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from jetsel.image import exif
from jetsel.image.header import MAX_SEGMENTS, Header, Still, damaged, truncated
from jetsel.image.limits import Limits, check_pixels

KIND = "WebP"
_ANIMATED = 0x02  # a flag of VP8X
_CANVAS_BYTES = 10
_FRAME_BYTES = 16  # of place, size, time and flags before a frame's own chunks
_LOSSY_START = b"\x9d\x01\x2a"
_LOSSLESS_START = 0x2F
_FIRST = (b"VP8X", b"VP8 ", b"VP8L")  # chunks that a file may begin with (RFC 9649, 2.5 to 2.7)
_SIDE_MASK = 0x3FFF  # frames state their sides in 14 bits


def read(data: memoryview, limits: Limits) -> Header:
    """Return the size and orientation of a whole WebP; what follows its RIFF container is not looked at.

    Of an animation the first frame is read, and its size is the canvas's.
    Raises BadImageError (truncated, damaged) and ImageTooLargeError.
    """
    canvas: tuple[int, int] | None = None
    frame: tuple[int, int] | None = None
    first: memoryview | None = None  # frame of an animation
    is_animated, orientation = False, exif.UPRIGHT
    for number, (name, content) in enumerate(_chunks(data)):
        if (name == b"VP8X" and number > 0) or (number == 0 and name not in _FIRST):
            raise damaged(KIND, f"its canvas or picture is not its first chunk, or not the only one: a chunk {name!r}")
        if name == b"VP8X":
            canvas = _canvas_size(content)
            check_pixels(*canvas, limits)
            is_animated = bool(content[0] & _ANIMATED)
        elif name in (b"VP8 ", b"VP8L"):
            if is_animated or frame is not None:
                raise damaged(KIND, "a second picture, or a still one in an animation")
            frame = _lossy_size(content) if name == b"VP8 " else _lossless_size(content)
            check_pixels(*frame, limits)
            if canvas not in (None, frame):
                raise damaged(KIND, f"its canvas is {canvas} pixels and its picture {frame}")
        elif is_animated and name == b"ANMF":
            first = content if first is None else first
        elif name == b"EXIF":
            has_prefix = content[: len(exif.PREFIX)] == exif.PREFIX
            orientation = exif.orientation_of(content[len(exif.PREFIX) :] if has_prefix else content)
    if canvas is not None and first is not None:
        return Header(*canvas, orientation, _first_frame(first, canvas))
    if frame is None:
        raise damaged(KIND, "it holds no picture")
    return Header(*frame, orientation)


def _first_frame(content: memoryview, canvas: tuple[int, int]) -> Still:
    """Return a frame as a WebP of its own (RFC 9649, 2.7.1.1), less its alpha, which is dropped from every picture."""
    if len(content) < _FRAME_BYTES:
        raise damaged(KIND, "its first frame is too short")
    left, top, wide, high = (int.from_bytes(content[at : at + 3], "little") for at in (0, 3, 6, 9))
    left, top, width, height = 2 * left, 2 * top, wide + 1, high + 1  # places are even, sides stand less one
    if left + width > canvas[0] or top + height > canvas[1]:
        raise damaged(KIND, f"its first frame lies outside of its canvas of {canvas[0]} x {canvas[1]} pixels")
    for name, picture in _parts(content[_FRAME_BYTES:]):
        if name in (b"VP8 ", b"VP8L"):
            size = _lossy_size(picture) if name == b"VP8 " else _lossless_size(picture)
            if size != (width, height):
                raise damaged(KIND, f"its first frame says {width} x {height} pixels and its picture {size}")
            chunk = name + struct.pack("<I", len(picture)) + bytes(picture) + b"\0" * (len(picture) % 2)
            return Still(b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk, left, top, width, height)
    raise damaged(KIND, "its first frame holds no picture")


def _parts(content: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield name and content of each chunk inside of a frame."""
    at = 0
    for _ in range(MAX_SEGMENTS):
        if at + 8 > len(content):
            return
        name, length = struct.unpack_from("<4sI", content, at)
        if at + 8 + length > len(content):
            raise damaged(KIND, "a chunk is longer than the frame that it lies in")
        yield name, content[at + 8 : at + 8 + length]
        at += 8 + length + length % 2


def size(data: memoryview) -> tuple[int, int]:
    """Return width and height by the first chunk, a canvas or a frame; raises BadImageError (truncated, damaged)."""
    if len(data) < 20:
        raise truncated(KIND, "inside its header")
    name, content = bytes(data[12:16]), data[20 : 20 + _CANVAS_BYTES]
    if name == b"VP8 ":
        return _lossy_size(content)
    if name == b"VP8L":
        return _lossless_size(content)
    if name != b"VP8X":
        raise damaged(KIND, f"it begins with a chunk {name!r}")
    return _canvas_size(content)


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


def _canvas_size(content: memoryview) -> tuple[int, int]:
    if len(content) < _CANVAS_BYTES:
        raise truncated(KIND, "inside its canvas header")
    return 1 + int.from_bytes(content[4:7], "little"), 1 + int.from_bytes(content[7:10], "little")


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
