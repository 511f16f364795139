"""Reads an image file's header (size, orientation), and computes how many pixels decoding will hold in memory.

This is fast enough for every request, since no pixel is decoded. Like libjpeg, libpng and libwebp it skips parts that
no image needs, but never copies or unpacks them, and only up to a bound (tests/unit/image/test_bombs.py).
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

import cv2
import numpy as np

from jetsel.base.errors import BadImageError
from jetsel.image.limits import Limits, check_bytes, check_pixels, damaged, other_format
from jetsel.image.pixels import check_layout
from jetsel.wire import Pixels

UPRIGHT, TRANSPOSED = 1, (5, 6, 7, 8)  # EXIF orientations: unchanged; width and height swapped
_TIFF = re.compile(rb"II\*\0|MM\0\*")  # start of an EXIF block, little-endian or big-endian
_TAG = 0x0112  # EXIF 2.32, 4.6.4 A: Orientation
_INTEGERS = {1: "B", 3: "H", 4: "I"}  # BYTE and LONG violate the specification, but other readers accept them
_MAX_ENTRIES = 1024  # IFD0 of real cameras has fewer than 100


def orientation_of(block: bytes | memoryview) -> int:
    """Return the orientation in an EXIF block, 1 to 8; 1 (upright) if there is none.

    It is 1 for an unreadable block too, which does not make the image unusable.
    """
    match = _TIFF.search(block, 0, 64)  # after a prefix, which some programs repeat or omit
    if match is None:
        return UPRIGHT
    tiff, order = block[match.start() :], "<" if match.group() == b"II*\0" else ">"
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (n_entries,) = struct.unpack_from(f"{order}H", tiff, start)
        for entry in range(start + 2, start + 2 + 12 * min(n_entries, _MAX_ENTRIES), 12):
            tag, kind = struct.unpack_from(f"{order}HH", tiff, entry)
            if tag == _TAG and kind in _INTEGERS:
                (value,) = struct.unpack_from(f"{order}{_INTEGERS[kind]}", tiff, entry + 8)
                return value if 1 <= value <= 8 else UPRIGHT
    except struct.error:  # it points past its end
        pass
    return UPRIGHT


def upright(bgr: np.ndarray, orientation: int) -> np.ndarray:
    """Apply an EXIF orientation (1 to 8) to (height, width, 3) uint8; return the same array if nothing changes."""
    if orientation in TRANSPOSED:
        bgr = cv2.transpose(bgr)
    flip = {2: 1, 6: 1, 3: -1, 7: -1, 4: 0, 8: 0}.get(orientation)  # as in cv2.flip: 1 left-right, -1 both
    return bgr if flip is None else cv2.flip(bgr, flip)


JPEG, PNG, WEBP = "JPEG", "PNG", "WebP"

_MAX_SEGMENTS = 5_000
"""Limit before a JPEG's first scan: 10 MB of EXIF take 160 segments, a colour profile at most 255."""
_MAX_JUNK_BYTES = 1 << 20
"""Limit of all bytes between the segments before a JPEG's first scan: firmware writes up to 70,000."""
_MARKER = re.compile(rb"\xff[^\x00\xff]")
_EXIF, _SCAN, _JPEG_LS = 0xE1, 0xDA, 0xF7
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD8)))  # T.81, B.1.1.3: markers without a length
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # T.81, table B.1: SOF0 to SOF15
_SEQUENTIAL = (0xC0, 0xC1)  # frames that are not progressive, lossless or arithmetic-coded
_ANIMATED, _HAS_EXIF = 0x02, 0x08  # flags of a WebP's first chunk, VP8X (RFC 9649, 2.7.1)
_WEBP_SIDE = 0x3FFF  # bits of a side


class ImageHeader(NamedTuple):
    """The format of a file, and its stored size in pixels before the EXIF orientation is applied."""

    kind: str  # JPEG, PNG or WEBP
    width: int
    height: int
    orientation: int = UPRIGHT  # 1 to 8
    scan_at: int = 0  # of a JPEG: index of the first scan's data
    is_streamed: bool = False  # its first scan holds the whole image: libjpeg decodes it row by row, also reduced
    has_junk: bool = False  # it has bytes between its segments


class MeasuredImage(NamedTuple):
    """What decoding an image will take, by its header."""

    pixels: int  # number that decoding holds in memory, about 3 bytes each
    header: ImageHeader | None = None  # None for raw pixels
    reduction: int = 1  # a JPEG is decoded at 1 / reduction of its size


def measure(data: memoryview, pixels: Pixels | None, limits: Limits, needed_px: int) -> MeasuredImage:
    """Return how many pixels decoding will hold in memory, by the header alone; `decode` checks the rest.

    data: an image file, or raw pixels in the layout `pixels`. needed_px: see `decode`. A JPEG that is decoded at 1/n of
    its size counts with the reduced size; one whose coefficients libjpeg must hold whole (ITU-T T.81: progressive, or a
    scan for each component) counts in full, as do other formats. Raises BadImageError (unknown or damaged header) or
    ImageTooLargeError.
    """
    check_bytes(len(data), limits)
    if pixels is not None:
        check_layout(pixels, len(data), limits)
        return MeasuredImage(pixels.width * pixels.height)
    start = bytes(data[:12])
    try:
        if start.startswith(b"\xff\xd8"):
            header = _jpeg(data)
        elif start.startswith(b"\x89PNG\r\n\x1a\n"):
            header = _png(data)
        elif start.startswith(b"RIFF") and start.endswith(b"WEBP"):
            header = _webp(data)
        else:
            raise other_format(data)
    except (ValueError, struct.error):
        raise damaged("image", "its header is cut short, or cannot be read") from None
    check_pixels(header.width, header.height, limits)
    reduction = _reduction(header.width, header.height, needed_px) if header.kind == JPEG else 1
    held_reduction = reduction if header.is_streamed else 1
    held_pixels = -(-header.width // held_reduction) * -(-header.height // held_reduction)
    return MeasuredImage(held_pixels, header, reduction)


def _reduction(width: int, height: int, needed_px: int) -> int:
    """Return the largest of 8, 4, 2 and 1 by which the shorter side can be divided and still has `needed_px` pixels."""
    shorter = min(width, height)
    for n in (8, 4, 2):  # runs for every request, so no generator
        if -(-shorter // n) >= needed_px:  # libjpeg rounds up
            return n
    return 1


def segments(data: memoryview) -> list[tuple[int, int, int]]:
    """Return marker code, start and end of each of a JPEG's segments up to its first scan, as libjpeg finds them.

    Bytes between segments, markers without content, and segments with an impossible length are skipped (ITU-T T.81,
    B.1). Raises ValueError, or struct.error (truncated).
    """
    spans: list[tuple[int, int, int]] = []  # no generator, which would resume for each segment of every request
    start, junk_bytes = 2, 0
    for _ in range(_MAX_SEGMENTS):
        filling, code, length = struct.unpack_from(">BBH", data, start)
        if filling != 0xFF or code in (0x00, 0xFF):  # no marker, or padding
            marker = _MARKER.search(data, start, start + _MAX_JUNK_BYTES - junk_bytes)
            if marker is None:
                raise ValueError("no further marker")
            junk_bytes += marker.start() - start
            start = marker.start()
        elif code in _WITHOUT_LENGTH or length < 2:
            start += 2
        else:
            spans.append((code, start, start + 2 + length))
            if code in (_SCAN, _JPEG_LS):
                return spans
            start += 2 + length
    raise ValueError("too many segments")


def without_junk(data: memoryview, header: ImageHeader) -> bytes:
    """Return a JPEG without the bytes that `segments` skips, about which libjpeg would write to stderr."""
    return b"".join((data[:2], *(data[start:end] for _, start, end in segments(data)), data[header.scan_at :]))


def _jpeg(data: memoryview) -> ImageHeader:
    """Return the header from the segments before the first scan; struct.error or ValueError if they are damaged."""
    frame, frame_code, exif, end, has_junk = (0, 0, 0), 0, data[:0], 2, False
    for code, start, next_end in segments(data):
        has_junk |= start != end
        end = next_end
        if code in _FRAMES:
            frame, frame_code = struct.unpack_from(">HHB", data, start + 5), code
        elif code == _EXIF and not exif and bytes(data[start + 4 : start + 9]) == b"Exif\0":  # then a padding byte
            exif = data[start + 4 : end]
        elif code == _JPEG_LS:
            raise BadImageError("the image is JPEG-LS, not a JPEG, PNG or WebP file: convert it to JPEG or PNG")
    height, width, components = frame
    (in_scan,) = struct.unpack_from("B", data, start + 4)
    is_streamed = frame_code in _SEQUENTIAL and in_scan == components
    return ImageHeader(JPEG, width, height, orientation_of(exif), end, is_streamed, has_junk)


def _png(data: memoryview) -> ImageHeader:
    """Return the header from the first chunk (PNG, third edition, 11.2.1), without the orientation."""
    name, width, height = struct.unpack_from(">4sII", data, 12)
    if name != b"IHDR":
        raise damaged(PNG, "its first chunk is not IHDR")
    return ImageHeader(PNG, width, height)


def _webp(data: memoryview) -> ImageHeader:
    """Return the header from the chunks of the first image (RFC 9649, 2.5 to 2.7; RFC 6386, 9.1)."""
    (size,) = struct.unpack_from("<I", data, 4)
    width, height, flags, exif, start, end = 0, 0, 0, data[:0], 12, 8 + size
    if end > len(data):
        raise ValueError("cut short")
    for _ in range(_MAX_SEGMENTS):
        if start + 8 > end:
            break
        name, length = struct.unpack_from("<4sI", data, start)
        content = data[start + 8 : start + 8 + length]
        if name == b"VP8X":
            (flags,) = struct.unpack_from("B", content)
        elif name == b"VP8 " and not width:
            width, height = (side & _WEBP_SIDE for side in struct.unpack_from("<HH", content, 6))
        elif name == b"VP8L" and not width:
            (bits,) = struct.unpack_from("<I", content, 1)
            width, height = 1 + (bits & _WEBP_SIDE), 1 + (bits >> 14 & _WEBP_SIDE)
        elif name == b"EXIF" and flags & _HAS_EXIF:
            exif = exif or content
        start += 8 + length + length % 2
    if flags & _ANIMATED:
        raise BadImageError("the WebP is animated: send one of its frames as a JPEG, PNG or WebP file")
    return ImageHeader(WEBP, width, height, orientation_of(exif))
