"""A box of an image, cut out as requests and calibration name it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from jetsel.base.errors import BadRequestError
from jetsel.image.pixels import Photograph

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
    known = [value for value in box if value is not None and math.isfinite(value)]
    if len(box) != 4 or len(known) != 4:
        raise BadRequestError(f"the box is {list(box)}: send four numbers: x, y, width, height")
    scales = (1, 1) if unit == "pixels" else (width_px, height_px)
    left, right = _ends(known[0], known[2], scales[0], width_px)
    top, bottom = _ends(known[1], known[3], scales[1], height_px)
    if left >= right or top >= bottom:
        raise BadRequestError(
            f"the box {known} in {unit} has no pixel of the image, which has {width_px} x {height_px}: send x, y, "
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
