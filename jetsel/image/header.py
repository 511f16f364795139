"""Read what an image file says of itself (orientation too), and how many pixels decoding it will take.

Cheap enough for every request: no pixel is decoded. Pillow reads WebP. Of PNG and EXIF it would copy or unpack
whatever a file says (see jetsel/image/png.py and below), and of JPEG it reads 15 MB of FF byte by byte and takes other
15 MB apart that no picture needs (tests/unit/image/test_bombs.py has the files): here those are passed over.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image, WebPImagePlugin

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.image.limits import Limits, check_bytes, check_pixels, damaged
from jetsel.image.pixels import check_layout
from jetsel.wire import Pixels

UPRIGHT = 1
EXIF_PREFIX = b"Exif\0\0"  # stands before the TIFF structure in JPEG and, against the specification, in some WebP files
_TAG = 0x0112  # EXIF 2.32, 4.6.4 A: Orientation
_SHORT = 3
_MAX_ENTRIES = 1024  # IFD0 of real cameras has fewer than 100


def orientation_of(block: bytes | memoryview) -> int:
    """Return the orientation, 1 to 8, that an EXIF block says; 1 (upright) if it says none or cannot be read.

    A damaged EXIF block is no reason to refuse a photograph, so nothing is raised.
    """
    tiff = block[len(EXIF_PREFIX) :] if bytes(block[: len(EXIF_PREFIX)]) == EXIF_PREFIX else block
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(tiff[:4]))
    if order is None:
        return UPRIGHT
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (n_entries,) = struct.unpack_from(f"{order}H", tiff, start)
        for number in range(min(n_entries, _MAX_ENTRIES)):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, start + 2 + 12 * number)
            if tag == _TAG:
                return value if kind == _SHORT and 1 <= value <= 8 else UPRIGHT
    except struct.error:  # it ends before what it points to
        pass
    return UPRIGHT


def swaps_sides(orientation: int) -> bool:
    """Whether the upright photograph is as wide as the stored one is high."""
    return orientation >= 5


def upright(bgr: np.ndarray, orientation: int) -> np.ndarray:
    """Return (height, width, 3) uint8 turned upright, C-contiguous: a new array, or the same if it is upright."""
    if swaps_sides(orientation):
        bgr = cv2.transpose(bgr)
    flip = {2: 1, 6: 1, 3: -1, 7: -1, 4: 0, 8: 0}.get(orientation)  # as cv2.flip counts: 1 left and right, -1 both
    return bgr if flip is None else cv2.flip(bgr, flip)


JPEG, PNG, WEBP = "JPEG", "PNG", "WebP"

_MAX_SEGMENTS = 5_000
"""Before a JPEG's picture: 10 MB of EXIF are 160, and a colour profile has 255 at most."""
_EXIF, _SCAN, _FILLING = 0xFFE1, 0xFFDA, 0xFFFF
_FRAMES = frozenset(range(0xFFC0, 0xFFD0)) - {0xFFC4, 0xFFC8, 0xFFCC}  # ITU-T T.81, table B.1: SOF0 to SOF15
_SEQUENTIAL = (0xFFC0, 0xFFC1)  # of these: neither progressive, nor without loss, nor of arithmetic coding
_ANIMATED = 0x02  # a flag of a WebP's first chunk, VP8X (RFC 9649, 2.7.1)


class Header(NamedTuple):
    """What a file says of itself: its format, and its stored size in pixels, EXIF orientation (1 to 8) not applied.

    scan_at: where the data of a JPEG's first scan begins. is_streamed: that scan holds the whole picture, so that it is
    decoded row by row, at a reduced size too.
    """

    kind: str
    width: int
    height: int
    orientation: int = UPRIGHT
    scan_at: int = 0
    is_streamed: bool = False


class Measured(NamedTuple):
    """The pixels that decoding takes in memory, of 3 bytes each or about as much; `header`: None for raw pixels.

    reduction: a JPEG is decoded at 1 / this of its size.
    """

    pixels: int
    header: Header | None = None
    reduction: int = 1


def measure(data: memoryview, pixels: Pixels | None, limits: Limits, needed_px: int) -> Measured:
    """Return what decoding will take, by the header alone; what stands behind that is for `decode` to check.

    data: an image file, or raw pixels, which lie as `pixels` says. A JPEG that is decoded straight to 1/n of its size
    counts as that many; one whose coefficients libjpeg must hold whole (ITU-T T.81: progressive, or a scan for each
    component) counts in full, as other formats do.
    Raises BadImageError (no header of a kind that is read, or a damaged one) and ImageTooLargeError.
    """
    check_bytes(len(data), limits)
    if pixels is not None:
        check_layout(pixels, len(data), limits)
        return Measured(pixels.width * pixels.height)
    header = read_header(data, limits)
    n = _reduction(header.width, header.height, needed_px) if header.kind == JPEG else 1
    held = n if header.is_streamed else 1
    return Measured(-(-header.width // held) * -(-header.height // held), header, n)


def read_header(data: memoryview, limits: Limits) -> Header:
    """Return a file's header; raises BadImageError and ImageTooLargeError as `measure` does."""
    kind, reader = _reader_of(data)
    try:
        header = reader(data)
    except Image.DecompressionBombError as error:  # Pillow's own limit, which is over what any WebP photograph has
        raise ImageTooLargeError(f"the {kind} has too many pixels: {error}; send a smaller one") from None
    except (SyntaxError, OSError, ValueError, struct.error) as error:
        raise damaged(kind, f"its header is truncated or cannot be read ({error})") from None
    check_pixels(header.width, header.height, limits)
    return header


def _reduction(width: int, height: int, needed_px: int) -> int:
    """Return the largest of 8, 4, 2 and 1 that leaves the shorter side `needed_px` pixels (libjpeg rounds sides up)."""
    shorter = min(width, height)
    for n in (8, 4, 2):  # for every request: no generator
        if -(-shorter // n) >= needed_px:
            return n
    return 1


def _jpeg(data: memoryview) -> Header:
    """Read the segments before the first scan (T.81, B.1 and B.2); what is in most of them is passed over."""
    frame, frame_kind, exif, at = None, 0, data[:0], 2
    for _ in range(_MAX_SEGMENTS):
        marker, length = struct.unpack_from(">HH", data, at)
        if marker == _FILLING:
            at += 1
            continue
        end = at + 2 + length
        if marker < 0xFF00 or end > len(data):
            raise SyntaxError("a segment is damaged")
        if marker in _FRAMES:
            if frame is not None:
                raise SyntaxError("two frame headers")
            frame, frame_kind = struct.unpack_from(">HHB", data, at + 5), marker
        elif marker == _EXIF and not exif and data[at + 4 : at + 10] == EXIF_PREFIX:
            exif = data[at + 4 : end]
        elif marker == _SCAN:
            if frame is None:
                raise SyntaxError("no frame header")
            height, width, components = frame
            (in_scan,) = struct.unpack_from("B", data, at + 4)
            is_streamed = frame_kind in _SEQUENTIAL and in_scan == components
            return Header(JPEG, width, height, orientation_of(exif), end, is_streamed)
        at = end
    raise SyntaxError(f"more than {_MAX_SEGMENTS} segments before its image data")


def _png(data: memoryview) -> Header:
    name, width, height = struct.unpack_from(">4sII", data, 12)
    if name != b"IHDR":
        raise SyntaxError("its first chunk is not IHDR")
    return Header(PNG, width, height)


def _webp(data: memoryview) -> Header:
    image = WebPImagePlugin.WebPImageFile(io.BytesIO(data))
    if bytes(data[12:16]) == b"VP8X" and data[20] & _ANIMATED:
        raise ValueError("an animation is not read: send one of its frames")
    return Header(WEBP, *image.size, orientation_of(image.info.get("exif", b"")))


_READERS: dict[bytes, tuple[str, Callable[[memoryview], Header]]] = {
    b"\xff\xd8\xff": (JPEG, _jpeg),
    b"\x89PNG\r\n\x1a\n": (PNG, _png),
    b"RIFF": (WEBP, _webp),
}
"""By the first bytes of a file: its format's name, and what reads its header."""


def _reader_of(data: memoryview) -> tuple[str, Callable[[memoryview], Header]]:
    start = bytes(data[:12])
    for magic, reader in _READERS.items():
        if start.startswith(magic) and (magic != b"RIFF" or start.endswith(b"WEBP")):
            return reader
    raise BadImageError(
        f"the image begins with {start[:4]!r}: it is not a JPEG, PNG or WebP file; save it as one of these"
    )
