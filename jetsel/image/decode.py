"""Decodes a JPEG, PNG or WebP file, after its header was read and its end was found."""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress

import cv2
import numpy as np

from jetsel.base.errors import BadImageError
from jetsel.image.header import (
    JPEG,
    PNG,
    TRANSPOSED,
    ImageHeader,
    MeasuredImage,
    measure,
    orientation_of,
    upright,
    without_junk,
)
from jetsel.image.limits import Limits, damaged, truncated
from jetsel.image.pixels import Photograph

# Replies report what is wrong with an image; OpenCV would also write a line to stderr for each and flood the log.
_LOG_FATAL_ONLY = 1
_set_log_level = getattr(cv2, "setLogLevel", None) or cv2.utils.logging.setLogLevel  # moved after OpenCV 4.10
_set_log_level(_LOG_FATAL_ONLY)

_FLAGS = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}
"""Reduction -> OpenCV's flag for BGR at 1/n of the size; libjpeg-turbo decodes a JPEG directly at that size."""

_MAX_SCANS, _MAX_LARGEST_SCANS = 64, 16
"""Limits of a JPEG's scans; encoders write about 10, and each costs a pass over the whole image.

The largest allowed image may have 16, a smaller one proportionally more, up to 64: a file of 16 MB can hold 1.6 million
(tests/unit/image/test_bombs.py).
"""
_EOI, _SOS = re.compile(rb"\xff\xd9"), re.compile(rb"\xff\xda")  # inside a scan's data, only 00 or D0..D7 follow FF


def decode(
    data: bytes | memoryview, limits: Limits, needed_px: int, measured: MeasuredImage | None = None
) -> Photograph:
    """Return the image in `data`, a whole JPEG, PNG or WebP file, upright, in 8-bit BGR.

    A JPEG is decoded at 1/8, 1/4 or 1/2 of its size if its shorter side then still has `needed_px` pixels. That is the
    largest input side of the family, never of one request, so that an image always gives the same pixels. Other formats
    are decoded whole, since OpenCV would shrink them only afterwards. Grey becomes BGR, 16 bits become 8 (see
    `_to_8_bits`); alpha channels and colour profiles are ignored. Of an animated PNG the default image is decoded.
    measured: the result of `measure` for the same data, limits and `needed_px`, None to measure here. Raises
    BadImageError (another format, empty, truncated, damaged, dark 16 bits) or ImageTooLargeError.
    """
    view = memoryview(data).cast("B")
    _, header, reduction = measured or measure(view, None, limits, needed_px)
    assert header is not None, "raw pixels must be read with from_pixels"
    orientation, stated_bits = header.orientation, 0
    if header.kind == JPEG:
        _check_end(view, header, limits)
        if header.has_junk:
            view = memoryview(without_junk(view, header))
    elif header.kind == PNG:
        stripped, orientation, stated_bits = _strip_png(view)
        view = memoryview(stripped)
    bgr = _decode_with_opencv(view, reduction, header)
    if bgr.dtype == np.uint16:
        bgr = _to_8_bits(bgr, stated_bits)
    if bgr.shape != (-(-header.height // reduction), -(-header.width // reduction), 3):
        size = f"{header.width} x {header.height} pixels"
        raise damaged(header.kind, f"its header gives {size}, but its content has another size")
    width, height = (header.height, header.width) if orientation in TRANSPOSED else (header.width, header.height)
    return Photograph(upright(bgr, orientation), width, height)


def to_area(photograph: Photograph, data: bytes | memoryview, limits: Limits, min_area_px: int) -> Photograph:
    """Return the image with min_area_px pixels or more, or all that it has; decode it again if it was reduced too far.

    data: the file that the image was decoded from. Raises the same errors as `decode`.
    """
    height_px, width_px = photograph.bgr.shape[:2]
    whole_px = photograph.width_px * photograph.height_px
    if height_px * width_px >= min(min_area_px, whole_px):
        return photograph
    shorter_px = min(photograph.width_px, photograph.height_px) * math.sqrt(min(1.0, min_area_px / whole_px))
    return decode(data, limits, math.ceil(shorter_px))


def _check_end(data: memoryview, header: ImageHeader, limits: Limits) -> None:
    """Raise BadImageError if a JPEG is truncated (has no EOI marker after its first scan) or has too many scans.

    EXIF thumbnails, which have an end of their own, come before the first scan, and second images after the end.
    """
    if header.is_streamed and bytes(data[-2:]) == b"\xff\xd9" and header.scan_at <= len(data) - 2:
        return  # nearly every image: no search needed
    end = _EOI.search(data, header.scan_at)
    if end is None:
        raise truncated(JPEG, "before its end-of-image marker")
    max_scans = min(_MAX_SCANS, _MAX_LARGEST_SCANS * limits.max_pixels // (header.width * header.height))
    scans = 1 + len(_SOS.findall(data, header.scan_at, end.start()))
    if scans > max_scans:
        raise damaged(JPEG, f"it has {scans} scans of {header.width} x {header.height} pixels, over {max_scans}")


def _decode_with_opencv(data: memoryview, reduction: int, header: ImageHeader) -> np.ndarray:
    """Return the stored pixels at 1 / reduction of the size: (height, width, 3) uint8, or uint16 for a PNG of 16 bits.

    EXIF is ignored, since OpenCV's versions treat it differently. Raises BadImageError or MemoryError.
    """
    flags = _FLAGS[reduction] | cv2.IMREAD_ANYDEPTH | cv2.IMREAD_IGNORE_ORIENTATION
    with suppress(cv2.error):
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
        if bgr is not None:  # None is missing in OpenCV's stubs
            return bgr
    # OpenCV does not report whether memory ran out, so allocate as much, for a MemoryError. Codecs hold up to 6 bytes
    # a pixel beside the 3 of the image: libjpeg's coefficients of a progressive file.
    np.empty((header.height, header.width, 9), np.uint8)
    raise damaged(header.kind, "it cannot be decoded, or it is of a rare variant that OpenCV does not read")


def _to_8_bits(bgr: np.ndarray, stated_bits: int) -> np.ndarray:
    """Convert 16-bit levels to uint8 of the same shape: 0 to 65,535 become 0 to 255.

    Many cameras store 10, 12 or 14 bits in 16 without scaling. If the PNG's sBIT states these bits, the levels are
    scaled by them; otherwise the image is rejected as nearly black. Levels scaled as the format demands end with zeros
    below the stated bits.
    """
    white, lowest, highest = 0xFFFF, int(bgr.min()), int(bgr.max())
    stated = (1 << stated_bits) - 1
    if highest <= stated < white and (bgr & (white >> stated_bits)).any():
        white = stated
    elif (highest - lowest) * 10 < white:
        raise BadImageError(
            f"the PNG of 16 bits has levels from {lowest} to {highest} only, less than a tenth of 0 to {white}: scale "
            "them to the full range, or save it with 8 bits"
        )
    return cv2.convertScaleAbs(bgr, alpha=255 / white)


# Before libpng reads a PNG, it is checked and cut to the chunks that its pixels need, because of two hostile files
# (PNG, third edition, section 5; tests/unit/image/test_bombs.py): libpng unpacks 900 texts of 8 MB each, 8 KB each
# in the file, in half a minute, and it unpacks and drops gigabytes that follow the last row of the
# image. Removed chunks are never unpacked, so of an animation only the default image is decoded.

_SIGNATURE_BYTES = 8
_MAX_CHUNKS = 65_536
"""Real files have under 5,000; a hostile file with this number costs 0.1 s."""
_ANCILLARY = 0x20  # bit of a name's first letter (lower case): decoders may skip the chunk (5.4)
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type (11.2.1)
_STEP_BYTES = 1 << 18  # unpacked at a time, to bound memory
_END = b"\0\0\0\0IEND\xae\x42\x60\x82"
_PROFILES = (b"Raw profile type exif", b"Raw profile type APP1")
"""Keywords of texts that hold EXIF as ImageMagick writes it: a name, a length, and hexadecimal digits."""


def _strip_png(data: memoryview) -> tuple[bytes, int, int]:
    """Return a PNG with only the chunks its pixels need, its EXIF orientation, and the bits per channel from sBIT.

    The orientation is 1 to 8; without sBIT the bits are 16. Raises BadImageError (truncated, damaged).
    """
    chunks, pixels, contents = [data[:_SIGNATURE_BYTES]], list[memoryview](), dict[bytes, memoryview]()
    exif_text = None  # only the first such text is read: each costs up to _STEP_BYTES
    for name, content, chunk in _chunks(data):
        contents.setdefault(name, content)
        if not name[0] & _ANCILLARY:
            chunks.append(chunk)
            if name == b"IDAT":
                pixels.append(content)
        elif exif_text is None and bytes(content[:21]) in _PROFILES:
            exif_text = _exif_in_text(name, bytes(content[22:_STEP_BYTES]))
    _check_pixel_bytes(data, pixels)
    orientation = orientation_of(contents.get(b"eXIf", exif_text or b""))
    return b"".join((*chunks, _END)), orientation, (contents.get(b"sBIT") or b"\x10")[0]


def _exif_in_text(name: bytes, text: bytes) -> bytes:
    """Return the EXIF block in a PNG's text chunk, empty if it is unreadable. text: what follows the keyword."""
    if name != b"tEXt":
        text = text[1:] if name == b"zTXt" else text[2:].split(b"\0", 2)[-1]  # iTXt: a language, a translated keyword
        with suppress(zlib.error):  # an iTXt may be uncompressed
            text = zlib.decompressobj().decompress(text, _STEP_BYTES)
    digits = b"".join(text.split()[2:])
    try:
        return bytes.fromhex(digits[: len(digits) // 2 * 2].decode("ascii"))
    except ValueError:
        return b""


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview, memoryview]]:
    """Yield name, content and all bytes of each of a PNG's chunks up to IEND; ignore data after IEND.

    Checksums are compared here because libpng reports wrong ones on stderr, and some versions then return half an
    image. Ancillary chunks with a wrong checksum are skipped.
    """
    start = _SIGNATURE_BYTES
    for _ in range(_MAX_CHUNKS):
        if start + 8 > len(data):
            raise truncated(PNG, "before its last chunk (IEND)")
        length, name = struct.unpack_from(">I4s", data, start)
        end = start + 8 + length
        if end + 4 > len(data):
            raise truncated(PNG, "inside a chunk")
        if name == b"IEND":
            return
        if zlib.crc32(data[start + 4 : end]) == int.from_bytes(data[end : end + 4], "big"):
            yield name, data[start + 8 : end], data[start : end + 4]
        elif not name[0] & _ANCILLARY:
            raise damaged(PNG, f"the checksum of a chunk {name!r} is wrong")
        start = end + 4
    raise damaged(PNG, f"it has more than {_MAX_CHUNKS} chunks")


def _check_pixel_bytes(data: memoryview, pixels: list[memoryview]) -> None:
    """Raise BadImageError if a PNG's pixel chunks (IDAT) unpack to more data than its header allows.

    libpng itself rejects a file with too little data.
    """
    width, height, depth, colour = struct.unpack_from(">IIBB", data, 16)
    # Each row starts with a filter byte and may end inside a byte; interlacing nearly doubles the number of rows.
    left_bytes = width * height * depth * _CHANNELS.get(colour, 4) // 8 + 4 * height + 16
    unpacking = zlib.decompressobj()
    try:
        for content in pixels:
            packed: bytes | memoryview = content
            while len(packed) and not unpacking.eof:
                left_bytes -= len(unpacking.decompress(packed, _STEP_BYTES))
                if left_bytes < 0:
                    raise damaged(PNG, "it holds more pixels than its header gives")
                packed = unpacking.unconsumed_tail
    except zlib.error:
        raise damaged(PNG, "its pixels cannot be unpacked, or fail their checksum") from None
    if not unpacking.eof:
        raise damaged(PNG, "its pixels end too early")
