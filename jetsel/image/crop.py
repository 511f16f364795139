"""A part of a photograph, as a box says where it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from jetsel.base.errors import BadRequestError
from jetsel.image.pixels import Photograph

Unit = Literal["pixels", "shares"]


def crop(photograph: Photograph, box: Sequence[float | None], unit: Unit) -> Photograph:
    """Return what is in a box: x, y, width, height from the upper left; a part outside the photograph is left out.

    photograph: decoded at its whole size. Raises BadRequestError for a box that is not four numbers, or of which no
    pixel is inside.
    """
    width_px, height_px = photograph.width_px, photograph.height_px
    known = [value for value in box if value is not None and math.isfinite(value)]
    if len(box) != 4 or len(known) != 4:
        raise BadRequestError(f"the box is {list(box)}: send four numbers: x, y, width, height")
    scales = (1.0, 1.0) if unit == "pixels" else (width_px, height_px)
    left, right = _ends(known[0] * scales[0], known[2] * scales[0], width_px)
    top, bottom = _ends(known[1] * scales[1], known[3] * scales[1], height_px)
    if left >= right or top >= bottom:
        raise BadRequestError(
            f"the box {known} in {unit} has no pixel of the image, which has {width_px} x {height_px}: send x, y, "
            "width, height from its upper left corner"
        )
    return Photograph(np.ascontiguousarray(photograph.bgr[top:bottom, left:right]), right - left, bottom - top)


def _ends(start: float, length: float, side_px: int) -> tuple[int, int]:
    """Return where a box begins and ends on one side of the photograph, in whole pixels inside it."""
    return max(0, round(min(start, side_px))), min(side_px, round(max(0.0, min(start + length, side_px))))
