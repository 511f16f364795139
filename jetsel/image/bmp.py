"""Read a BMP's size and check that all its pixels are there, before it is decoded (Microsoft: BITMAPINFOHEADER)."""

from __future__ import annotations

import struct

from jetsel.errors import BadImageError
from jetsel.image import exif
from jetsel.image.header import Header, damaged, truncated
from jetsel.image.limits import Limits, check_pixels

KIND = "BMP"
_FILE_HEADER_BYTES = 14
_CORE_HEADER_BYTES = 12  # OS/2 1.x
_INFO_HEADER_BYTES = 40
_DEPTHS = (1, 4, 8, 16, 24, 32)
_UNCOMPRESSED = (0, 3)  # BI_RGB, BI_BITFIELDS


def read(data: memoryview, limits: Limits) -> Header:
    """Return the size of a whole, uncompressed BMP.

    Raises BadImageError (truncated, damaged, compressed) and ImageTooLargeError.
    """
    width, height, depth, compression = _info(data)
    check_pixels(width, height, limits)
    if depth not in _DEPTHS:
        raise damaged(KIND, f"it says that a pixel has {depth} bits")
    if compression not in _UNCOMPRESSED:
        raise BadImageError(
            f"the BMP is compressed (type {compression}), which is not read; save it uncompressed, or as PNG"
        )
    (pixels_at,) = struct.unpack_from("<I", data, 10)
    row_bytes = (width * depth + 31) // 32 * 4
    if pixels_at + row_bytes * height > len(data):
        raise truncated(KIND, "inside its pixels")
    return Header(width, height, exif.UPRIGHT)


def size(data: memoryview) -> tuple[int, int]:
    """Return width and height; raises BadImageError (truncated, damaged)."""
    width, height, _, _ = _info(data)
    return width, height


def _info(data: memoryview) -> tuple[int, int, int, int]:
    """Return width, height, bits a pixel, compression; a negative height means that the top row stands first."""
    if len(data) < _FILE_HEADER_BYTES + 4:
        raise truncated(KIND, "inside its header")
    (header_bytes,) = struct.unpack_from("<I", data, _FILE_HEADER_BYTES)
    if header_bytes != _CORE_HEADER_BYTES and header_bytes < _INFO_HEADER_BYTES:
        raise damaged(KIND, f"a header of {header_bytes} bytes")
    if _FILE_HEADER_BYTES + header_bytes > len(data):
        raise truncated(KIND, "inside its header")
    if header_bytes == _CORE_HEADER_BYTES:
        width, height, _, depth = struct.unpack_from("<HHHH", data, _FILE_HEADER_BYTES + 4)
        return width, height, depth, 0
    width, height, _, depth, compression = struct.unpack_from("<iiHHI", data, _FILE_HEADER_BYTES + 4)
    return width, abs(height), depth, compression
