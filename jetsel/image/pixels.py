"""Decoded images: from raw camera frames, cropped to boxes, and encoded as JPEG."""

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
    """One decoded image.

    bgr: (height, width, 3) uint8, C-contiguous, EXIF orientation applied; smaller than the original if a large JPEG was
    decoded at a reduced scale. It may be a read-only view of the sender's raw pixels: never write to it. width_px,
    height_px: the original's size, after orientation.
    """

    bgr: np.ndarray
    width_px: int
    height_px: int


_BYTES_PER_PIXEL = {"bgr8": 3, "rgb8": 3, "gray8": 1, "nv12": 1}  # in one row; without nv12's second plane


def from_pixels(data: bytes | memoryview, pixels: Pixels, limits: Limits) -> Photograph:
    """Return the image for raw pixels in the layout `pixels`.

    nv12 is a plane of luma with `height` rows, then one of interleaved U and V with `height` / 2 rows; it is read as
    BT.601 in video range, as OpenCV does. The data must have exactly the bytes of all rows, including the last row's
    padding. bgr8 without padding is not copied: the image is then a read-only view of `data`, which must not change
    while it is used. Raises BadImageError naming the wrong field, or ImageTooLargeError.
    """
    view = memoryview(data).cast("B")
    check_bytes(len(view), limits)
    check_layout(pixels, len(view), limits)
    rows = np.frombuffer(view, np.uint8).reshape(-1, pixels.stride)[:, : pixels.width * _BYTES_PER_PIXEL[pixels.format]]
    return Photograph(_bgr(rows, pixels), pixels.width, pixels.height)


def check_layout(pixels: Pixels, n_bytes: int, limits: Limits) -> None:
    """Raise BadImageError naming the field that contradicts other fields or n_bytes, or ImageTooLargeError."""
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
    """Convert raw pixels to BGR, (height, width, 3) uint8, C-contiguous. rows: (rows, bytes without padding) uint8."""
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


JPEG_QUALITY = 92  # 1 to 2 bits a pixel


def smaller_size(width_px: int, height_px: int, shorter_px: int) -> tuple[int, int]:
    """Return (width, height) in pixels scaled down so that the shorter side is `shorter_px`; never enlarged."""
    scale = shorter_px / min(width_px, height_px)
    if scale >= 1:
        return width_px, height_px
    return max(1, round(width_px * scale)), max(1, round(height_px * scale))


def jpeg(bgr: np.ndarray, shorter_px: int | None = None, quality: int = JPEG_QUALITY) -> bytes:
    """Encode BGR pixels, (height, width, 3) uint8, as JPEG. shorter_px: reduce a larger image to this shorter side."""
    height_px, width_px = bgr.shape[:2]
    size = (width_px, height_px) if shorter_px is None else smaller_size(width_px, height_px, shorter_px)
    if size != (width_px, height_px):
        bgr = cv2.resize(bgr, size, interpolation=cv2.INTER_AREA)
    encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return encoded.tobytes()


Unit = Literal["pixels", "shares"]  # of a box: pixels of the upright image, or shares (0 to 1) of its sides


def crop(photograph: Photograph, box: Sequence[float | None], unit: Unit) -> Photograph:
    """Return a copy of the image inside a box (see `pixels_of_box`). It must have been decoded at its full size."""
    left, top, right, bottom = pixels_of_box(box, unit, photograph.width_px, photograph.height_px)
    return Photograph(np.ascontiguousarray(photograph.bgr[top:bottom, left:right]), right - left, bottom - top)


def pixels_of_box(box: Sequence[float | None], unit: Unit, width_px: int, height_px: int) -> tuple[int, int, int, int]:
    """Return the box as x0, y0, x1, y1 in whole pixels, x1 and y1 exclusive, cut off at the image's edges.

    box: x, y, width, height. Edges are rounded, halves up; a box with area inside the image has at least one pixel.
    Raises BadRequestError for a box that is not four numbers or lies outside the image.
    """
    finite = [value for value in box if value is not None and math.isfinite(value)]
    if len(box) != 4 or len(finite) != 4:
        raise BadRequestError(f"the box is {list(box)}: send four numbers: x, y, width, height")
    scales = (1, 1) if unit == "pixels" else (width_px, height_px)
    left, right = _pixel_range(finite[0], finite[2], scales[0], width_px)
    top, bottom = _pixel_range(finite[1], finite[3], scales[1], height_px)
    if left >= right or top >= bottom:
        raise BadRequestError(
            f"the box {finite} in {unit} has no pixel of the image, which has {width_px} x {height_px}: send x, y, "
            "width, height from its upper left corner"
        )
    return left, top, right, bottom


def _pixel_range(start: float, length: float, scale: int, side_px: int) -> tuple[int, int]:
    """Return a box's start and end along one side of the image, in whole pixels. scale: pixels of a unit."""
    low, high = (min(max(0.0, edge * scale), side_px) for edge in (start, start + length))
    if low >= high:
        return 0, 0
    first = min(math.floor(low + 0.5), math.ceil(high) - 1)
    return first, max(first + 1, math.floor(high + 0.5))
