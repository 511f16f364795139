"""Decode a JPEG, PNG or WebP file into a photograph, once its header has been read and it is seen to be whole."""

from __future__ import annotations

import math
import re

import cv2
import numpy as np

from jetsel.base.errors import BadImageError
from jetsel.image.header import JPEG, PNG, UPRIGHT, Header, Measured, measure, swaps_sides, upright
from jetsel.image.limits import Limits, damaged, truncated
from jetsel.image.pixels import Photograph
from jetsel.image.png import picture_of

# The reply says what is wrong with an image; OpenCV's own line on stderr for each of them would flood the log.
_LOG_FATAL_ONLY = 1
_set_log_level = getattr(cv2, "setLogLevel", None) or cv2.utils.logging.setLogLevel  # it moved after OpenCV 4.10
_set_log_level(_LOG_FATAL_ONLY)

_FLAGS = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}
"""How OpenCV is asked for 8-bit BGR at 1/n of the size: libjpeg-turbo decodes a JPEG straight to it."""

_MAX_SCANS, _MAX_LARGEST_SCANS = 64, 16
"""Of a JPEG: each scan costs a pass over the whole picture, however short it is, and encoders write about 10. The
largest picture that the limits allow may have 16, a smaller one as many more, up to 64: a file of 16 MB holds 1.6
million (tests/unit/image/test_bombs.py)."""
_EOI, _SOS = re.compile(rb"\xff\xd9"), re.compile(rb"\xff\xda")  # inside a scan's data FF is followed by 00 or D0..D7


def decode(data: bytes | memoryview, limits: Limits, needed_px: int, measured: Measured | None = None) -> Photograph:
    """Return the photograph in `data`, a whole JPEG, PNG or WebP file, upright, in 8-bit BGR.

    A JPEG is decoded at 1/8, 1/4 or 1/2 of its size if its shorter side then still has `needed_px` pixels; that is
    the largest input side of the family, never of one request, so that a photograph has the same pixels each time.
    Other formats are always decoded whole: OpenCV would only shrink them afterwards. Grey becomes BGR, 16 bits become 8
    (the upper ones), an alpha channel is dropped, not blended, and an embedded colour profile is ignored. Of an
    animated PNG the default image is decoded.
    measured: what `measure` returned for the same data, limits and `needed_px`; None: it is asked here.
    Raises BadImageError (another format, empty, truncated, damaged) or ImageTooLargeError.
    """
    view = memoryview(data).cast("B")
    _, header, n = measured or measure(view, None, limits, needed_px)
    assert header is not None, "raw pixels must be read with from_pixels"
    orientation = header.orientation
    if header.kind == JPEG:
        _check_end(view, header, limits)
        bgr = _decoded(view, n, header)
    elif header.kind == PNG:
        picture, orientation = picture_of(view)
        bgr = _decoded(picture, n, header)
    else:
        bgr = _decoded(view, n, header)
    if bgr.shape != (-(-header.height // n), -(-header.width // n), 3):
        size = f"{header.width} x {header.height} pixels"
        raise damaged(header.kind, f"its header gives {size}, but its content has another size")
    if orientation == UPRIGHT:
        return Photograph(bgr, header.width, header.height)
    width, height = (header.height, header.width) if swaps_sides(orientation) else (header.width, header.height)
    return Photograph(upright(bgr, orientation), width, height)


def of_area(photograph: Photograph, data: bytes | memoryview, limits: Limits, area_px: int) -> Photograph:
    """Return the image with at least this number of pixels, or with all that it has: decoded anew if it has fewer.

    data: what it was decoded from. Raises as `decode` does.
    """
    height_px, width_px = photograph.bgr.shape[:2]
    whole_px = photograph.width_px * photograph.height_px
    if height_px * width_px >= min(area_px, whole_px):
        return photograph
    shorter_px = min(photograph.width_px, photograph.height_px) * math.sqrt(min(1.0, area_px / whole_px))
    return decode(data, limits, math.ceil(shorter_px))


def _check_end(data: memoryview, header: Header, limits: Limits) -> None:
    """Raise BadImageError unless a JPEG's picture has an end (EOI) after its first scan, and no more scans than it may.

    EXIF thumbnails, which have an end of their own, stand before the first scan, and second pictures after the end.
    """
    if header.is_streamed and bytes(data[-2:]) == b"\xff\xd9" and header.scan_at <= len(data) - 2:
        return  # nearly every photograph: it is spared the search
    end = _EOI.search(data, header.scan_at)
    if end is None:
        raise truncated(JPEG, "before its end-of-image marker")
    most = min(_MAX_SCANS, _MAX_LARGEST_SCANS * limits.max_pixels // (header.width * header.height))
    scans = 1 + len(_SOS.findall(data, header.scan_at, end.start()))
    if scans > most:
        raise damaged(JPEG, f"it has {scans} scans of {header.width} x {header.height} pixels, over {most}")


def _decoded(data: bytes | memoryview, n: int, header: Header) -> np.ndarray:
    """Return (height, width, 3) uint8 as stored, at 1/n of the size; OpenCV's versions differ in what EXIF they apply.

    Raises BadImageError, and MemoryError if there is too little.
    """
    try:
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), _FLAGS[n] | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise _undecodable(header) from error
    if bgr is None:  # what the stubs of OpenCV leave out
        raise _undecodable(header)
    return bgr


def _undecodable(header: Header) -> BadImageError:
    """Return the error for a file that no library decodes; raises MemoryError if memory may have been the reason.

    OpenCV says of either only that it failed. The codecs hold up to 6 bytes a pixel beside the 3 of the picture:
    libjpeg's coefficients of a progressive file.
    """
    np.empty((header.height, header.width, 9), np.uint8)
    return damaged(header.kind, "it cannot be decoded, or it is of a rare variant that OpenCV does not read")
