"""A photograph as pixels: what every later stage sees, from raw frames of a camera, a box of it, and to a JPEG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np
from msgspec import Struct

from jetsel.base.errors import BadImageError, BadRequestError
from jetsel.image.limits import Limits, check_bytes, check_pixels
from jetsel.wire import Pixels


class Photograph(Struct, frozen=True, eq=False):
    """One decoded photograph.

    bgr: (height, width, 3) uint8, C-contiguous, EXIF orientation applied; smaller than the original if a large JPEG
    was decoded at reduced scale. It may be a read-only view of raw pixels that the caller sent: never write to it.
    width_px, height_px: the original's size, after orientation.
    """

    bgr: np.ndarray
    width_px: int
    height_px: int


_BYTES_PER_PIXEL = {"bgr8": 3, "rgb8": 3, "gray8": 1, "nv12": 1}  # of one row; nv12's second plane is counted apart


def from_pixels(data: bytes | memoryview, pixels: Pixels, limits: Limits) -> Photograph:
    """Return the photograph that raw pixels are, which lie in `data` as `pixels` says.

    nv12 is a plane of luma, `height` rows, and below it one of interleaved U and V, `height` / 2 rows as long; it is
    read as BT.601 in video range, as OpenCV does. The length must be exactly that of all rows, the last one's padding
    included. bgr8 without padding is not copied: the photograph is then a read-only view of `data`, which must stay
    unchanged for as long as that is used.
    Raises BadImageError naming the field that is wrong, or ImageTooLargeError.
    """
    view = memoryview(data).cast("B")
    check_bytes(len(view), limits)
    check_layout(pixels, len(view), limits)
    rows = np.frombuffer(view, np.uint8).reshape(-1, pixels.stride)[:, : pixels.width * _BYTES_PER_PIXEL[pixels.format]]
    return Photograph(_bgr(rows, pixels), pixels.width, pixels.height)


def check_layout(pixels: Pixels, n_bytes: int, limits: Limits) -> None:
    """Raise BadImageError naming the field that contradicts the others or the length, or ImageTooLargeError."""
    for field in ("width", "height", "stride"):
        if getattr(pixels, field) <= 0:
            raise BadImageError(f"{field} is {getattr(pixels, field)}; it must be at least 1")
    check_pixels(pixels.width, pixels.height, limits)
    row_bytes = pixels.width * _BYTES_PER_PIXEL[pixels.format]
    if pixels.stride < row_bytes:
        raise BadImageError(
            f"stride is {pixels.stride}; {pixels.width} pixels of {pixels.format} take {row_bytes} bytes"
        )
    n_rows = pixels.height
    if pixels.format == "nv12":
        for field in ("width", "height"):
            if getattr(pixels, field) % 2:
                raise BadImageError(f"{field} is {getattr(pixels, field)}; nv12 needs an even one")
        n_rows += pixels.height // 2
    if n_bytes != pixels.stride * n_rows:
        raise BadImageError(
            f"the pixels have {n_bytes} bytes; {n_rows} rows of stride {pixels.stride} are {pixels.stride * n_rows}"
        )


def _bgr(rows: np.ndarray, pixels: Pixels) -> np.ndarray:
    """Return (height, width, 3) uint8, C-contiguous, from (rows, bytes of a row without padding) uint8."""
    height, width = pixels.height, pixels.width
    if pixels.format == "gray8":
        return cv2.cvtColor(rows, cv2.COLOR_GRAY2BGR)
    if pixels.format == "nv12":
        chroma = rows[height:].reshape(height // 2, width // 2, 2)
        return cv2.cvtColorTwoPlane(rows[:height], chroma, cv2.COLOR_YUV2BGR_NV12)
    if pixels.format == "rgb8":
        return cv2.cvtColor(rows.reshape(height, width, 3), cv2.COLOR_RGB2BGR)
    bgr = np.ascontiguousarray(rows.reshape(height, width, 3))
    bgr.flags.writeable = False
    return bgr


JPEG_QUALITY = 92  # 1 to 2 bits a pixel of photographs


def smaller_size(width_px: int, height_px: int, shorter_px: int) -> tuple[int, int]:
    """Return width and height with this shorter side; as they are if that is not longer."""
    scale = shorter_px / min(width_px, height_px)
    if scale >= 1:
        return width_px, height_px
    return max(1, round(width_px * scale)), max(1, round(height_px * scale))


def jpeg(bgr: np.ndarray, shorter_px: int | None = None, quality: int = JPEG_QUALITY) -> bytes:
    """Return (height, width, 3) uint8 as a JPEG, reduced by area to this shorter side if it is longer."""
    height_px, width_px = bgr.shape[:2]
    size = (width_px, height_px) if shorter_px is None else smaller_size(width_px, height_px, shorter_px)
    if size != (width_px, height_px):
        bgr = cv2.resize(bgr, size, interpolation=cv2.INTER_AREA)
    encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return encoded.tobytes()


Unit = Literal["pixels", "shares"]


def crop(photograph: Photograph, box: Sequence[float | None], unit: Unit) -> Photograph:
    """Return what is in a box, which `pixels_of_box` describes, of an image that was decoded at its whole size."""
    left, top, right, bottom = pixels_of_box(box, unit, photograph.width_px, photograph.height_px)
    return Photograph(np.ascontiguousarray(photograph.bgr[top:bottom, left:right]), right - left, bottom - top)


def pixels_of_box(box: Sequence[float | None], unit: Unit, width_px: int, height_px: int) -> tuple[int, int, int, int]:
    """Return x0, y0, x1, y1 in whole pixels, x1 and y1 not included; a part outside the image is left out.

    box: x, y, width, height. Edges are rounded, halves up; a box with area inside the image has at least one pixel.
    Raises BadRequestError for a box that is not four numbers, or of which nothing is inside.
    """
    finite = [value for value in box if value is not None and math.isfinite(value)]
    if len(box) != 4 or len(finite) != 4:
        raise BadRequestError(f"the box is {list(box)}: send four numbers: x, y, width, height")
    scales = (1, 1) if unit == "pixels" else (width_px, height_px)
    left, right = _ends(finite[0], finite[2], scales[0], width_px)
    top, bottom = _ends(finite[1], finite[3], scales[1], height_px)
    if left >= right or top >= bottom:
        raise BadRequestError(
            f"the box {finite} in {unit} has no pixel of the image, which has {width_px} x {height_px}: send x, y, "
            "width, height from its upper left corner"
        )
    return left, top, right, bottom


def _ends(start: float, length: float, scale: int, side_px: int) -> tuple[int, int]:
    """Return where a box begins and ends on one side of the image, in whole pixels inside it; equal if it has none."""
    first, last = (min(max(0.0, edge * scale), side_px) for edge in (start, start + length))
    if first >= last:
        return 0, 0
    left = min(math.floor(first + 0.5), math.ceil(last) - 1)
    return left, max(left + 1, math.floor(last + 0.5))
