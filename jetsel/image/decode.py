"""Decode a JPEG, PNG, WebP or BMP file into a photograph; its header and length are checked first."""

from __future__ import annotations

import cv2
import numpy as np

from jetsel.errors import BadImageError
from jetsel.image import jpeg
from jetsel.image.exif import swaps_sides, upright
from jetsel.image.formats import format_of
from jetsel.image.header import Header, Still, damaged
from jetsel.image.limits import Limits
from jetsel.image.measure import Measured, measure, reduction
from jetsel.image.photograph import Photograph

# The sender is told what is wrong with an image; OpenCV's own line on stderr for each of them would flood the log.
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


def decode(data: bytes | memoryview, limits: Limits, needed_px: int, measured: Measured | None = None) -> Photograph:
    """Return the photograph in `data`, a whole JPEG, PNG, WebP or BMP file, upright, in 8-bit BGR.

    A JPEG is decoded at 1/8, 1/4 or 1/2 of its size where its shorter side then still has `needed_px` pixels; that is
    the largest input side of the family, never of one request, so that a photograph has the same pixels each time.
    Other formats are always decoded whole: OpenCV would only shrink them afterwards. Grey becomes BGR, 16 bits become 8
    (the upper ones), an alpha channel is dropped, not blended, and an embedded colour profile is ignored. Of an
    animation the first frame is decoded (WebP; the canvas around it is black) or the default image (PNG).
    measured: what `measure` returned for the same data, limits and `needed_px`; None: it is asked here.
    Raises BadImageError (another format, empty, truncated, damaged, or more pixels than were measured) or
    ImageTooLargeError.
    """
    view = memoryview(data).cast("B")
    if measured is None:
        measured = measure(view, None, limits, needed_px)
    kind, header = _header(view, limits, measured)
    n = reduction(header.width, header.height, needed_px) if kind == jpeg.KIND else 1
    taken = -(-header.width // n) * -(-header.height // n)
    if taken > measured.pixels:
        raise damaged(kind, f"its first header says {measured.pixels} pixels and what follows {taken}")
    if header.still is None:
        bgr = _pixels(view, kind, n, header, (header.width, header.height))
    else:
        bgr = _on_canvas(header.still, kind, header)
    width, height = header.width, header.height
    if swaps_sides(header.orientation):
        width, height = height, width
    return Photograph(upright(bgr, header.orientation), width, height)


def _header(data: memoryview, limits: Limits, measured: Measured) -> tuple[str, Header]:
    """Return the format's name and what the whole file says of itself."""
    kind, read = format_of(data)
    if measured.start is not None:
        return kind, jpeg.finish(data, measured.start, limits)
    return kind, read(data, limits)


def _on_canvas(still: Still, kind: str, header: Header) -> np.ndarray:
    """Return (header.height, header.width, 3) uint8: the first picture of an animation, and black around it."""
    bgr = _pixels(memoryview(still.data), kind, 1, header, (still.width, still.height))
    if bgr.shape == (header.height, header.width, 3):
        return bgr
    canvas = np.zeros((header.height, header.width, 3), np.uint8)
    canvas[still.top : still.top + still.height, still.left : still.left + still.width] = bgr
    return canvas


def _pixels(data: memoryview, kind: str, n: int, header: Header, size: tuple[int, int]) -> np.ndarray:
    """Return (height, width, 3) uint8 as stored, at 1/n of the size (width, height) that the picture must have.

    OpenCV's versions differ in what EXIF they apply, so we do.
    """
    try:
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), _FLAGS[n] | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        _check_memory(header)
        raise _undecodable(kind) from error
    if bgr is None:  # what the stubs of OpenCV leave out
        _check_memory(header)
        raise _undecodable(kind)
    if bgr.shape != (-(-size[1] // n), -(-size[0] // n), 3):
        raise damaged(kind, f"its header says {size[0]} x {size[1]} pixels and its content another size")
    return bgr


def _check_memory(header: Header) -> None:
    """Raise MemoryError where what decoding may have needed cannot be had: OpenCV says of either only that it failed.

    The codecs hold up to 6 bytes a pixel beside the 3 of the picture: libjpeg's coefficients of a progressive file.
    """
    np.empty((header.height, header.width, 9), np.uint8)


def _undecodable(kind: str) -> BadImageError:
    return damaged(kind, "it cannot be decoded, or it is of a rare variant that OpenCV does not read")
