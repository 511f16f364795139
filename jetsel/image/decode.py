"""Decode a JPEG, PNG or WebP file into a photograph, once its header has been read and it is seen to be whole."""

from __future__ import annotations

import math
import re
from contextlib import suppress

import cv2
import numpy as np

from jetsel.base.errors import BadImageError
from jetsel.image.header import JPEG, PNG, TRANSPOSED, Header, Measured, measure, upright, without_junk
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
"""How OpenCV is asked for BGR at 1/n of the size: libjpeg-turbo decodes a JPEG straight to it."""

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
    (see `_of_16_bits`), an alpha channel is dropped, not blended, and an embedded colour profile is ignored. Of an
    animated PNG the default image is decoded.
    measured: what `measure` returned for the same data, limits and `needed_px`; None: it is asked here.
    Raises BadImageError (another format, empty, truncated, damaged, dark 16 bits) or ImageTooLargeError.
    """
    view = memoryview(data).cast("B")
    _, header, n = measured or measure(view, None, limits, needed_px)
    assert header is not None, "raw pixels must be read with from_pixels"
    orientation, stated_bits = header.orientation, 0
    if header.kind == JPEG:
        _check_end(view, header, limits)
        if header.has_junk:
            view = memoryview(without_junk(view, header))
    elif header.kind == PNG:
        picture, orientation, stated_bits = picture_of(view)
        view = memoryview(picture)
    bgr = _decoded(view, n, header)
    if bgr.dtype == np.uint16:
        bgr = _of_16_bits(bgr, stated_bits)
    if bgr.shape != (-(-header.height // n), -(-header.width // n), 3):
        size = f"{header.width} x {header.height} pixels"
        raise damaged(header.kind, f"its header gives {size}, but its content has another size")
    width, height = (header.height, header.width) if orientation in TRANSPOSED else (header.width, header.height)
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


def _decoded(data: memoryview, n: int, header: Header) -> np.ndarray:
    """Return (height, width, 3) as stored, uint8 or, of a PNG of 16 bits, uint16, at 1/n of the size.

    OpenCV's versions differ in what EXIF they apply. Raises BadImageError, and MemoryError if there is too little.
    """
    flags = _FLAGS[n] | cv2.IMREAD_ANYDEPTH | cv2.IMREAD_IGNORE_ORIENTATION
    with suppress(cv2.error):
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
        if bgr is not None:  # what the stubs of OpenCV leave out
            return bgr
    # Memory may have been the reason: OpenCV says of either only that it failed. The codecs hold up to 6 bytes a pixel
    # beside the 3 of the picture: libjpeg's coefficients of a progressive file.
    np.empty((header.height, header.width, 9), np.uint8)
    raise damaged(header.kind, "it cannot be decoded, or it is of a rare variant that OpenCV does not read")


def _of_16_bits(bgr: np.ndarray, stated_bits: int) -> np.ndarray:
    """Return uint8 of the same shape: 0 to 65,535 become 0 to 255.

    Many cameras save 10, 12 or 14 bits in 16 unscaled. They are scaled by the bits that a PNG's sBIT states, or refused
    as nearly black. Levels that were scaled, as the format demands, end with zeros below the stated bits.
    """
    full, lowest, highest = 0xFFFF, int(bgr.min()), int(bgr.max())
    stated = (1 << stated_bits) - 1
    if highest <= stated < full and (bgr & (full >> stated_bits)).any():
        full = stated
    elif (highest - lowest) * 10 < full:
        raise BadImageError(
            f"the PNG of 16 bits has levels from {lowest} to {highest} only, less than a tenth of 0 to {full}: scale "
            "them to the full range, or save it with 8 bits"
        )
    return cv2.convertScaleAbs(bgr, alpha=255 / full)
