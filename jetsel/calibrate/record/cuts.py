"""The part of an image that models get: the whole image, a reduced copy, or a detector's box."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadImageError, CalibrationError
from jetsel.features import NAMES, extract


class Cut(NamedTuple):
    """A part of an image that is recorded as an image of its own; the default is the whole image."""

    shorter_px: int | None = None  # shorter side of a reduced copy
    box: tuple[float, float, float, float] | None = None  # x, y, width, height in shares of the image's sides

    @property
    def text(self) -> str:
        """The cut as the recording stores it, in JSON; empty for the whole image."""
        return "" if self == WHOLE else msgspec.json.encode(self).decode()

    def key(self, sha256: str) -> str:
        """Return the identifier of this part of a file; for the whole image, the file's own hash."""
        return sha256 if self == WHOLE else hashlib.sha256(f"{sha256} {self.text}".encode()).hexdigest()


WHOLE = Cut()


class TooSmallError(BadImageError):
    """The image is not larger than the requested reduced copy."""


class CutImage(NamedTuple):
    """An image as models get it."""

    photograph: image.Photograph
    data: bytes | None  # the file's content, None for a part of the image
    whole: image.Photograph  # the whole image, decoded

    def extract(self, limits: image.Limits, features_px: int, names: Sequence[str] = NAMES) -> NDArray[np.float32]:
        """Return these features, (len(names),), as the daemon extracts them.

        features_px: most pixels that features read; if models read fewer, the image is decoded again.
        """
        area = self.photograph if self.data is None else image.to_area(self.photograph, self.data, limits, features_px)
        return extract(area.bgr, names, features_px, (self.photograph.width_px, self.photograph.height_px))


def decode_cut(data: bytes, cut: Cut, limits: image.Limits, decode_px: int) -> CutImage:
    """Decode an image file's content and cut it as the daemon does. decode_px: shorter side that models need.

    Raises BadImageError, ImageTooLargeError, or TooSmallError if a reduced copy would not be smaller.
    """
    whole = image.decode(data, limits, decode_px if cut == WHOLE else limits.max_pixels)
    if cut.box is not None:
        return CutImage(image.crop(whole, cut.box, "shares"), None, whole)
    if cut.shorter_px is None:
        return CutImage(whole, data, whole)
    if min(whole.width_px, whole.height_px) <= cut.shorter_px:
        raise TooSmallError(f"too small: its shorter side is not above {cut.shorter_px} pixels")
    width_px, height_px = image.smaller_size(whole.width_px, whole.height_px, cut.shorter_px)
    bgr = np.asarray(cv2.resize(whole.bgr, (width_px, height_px), interpolation=cv2.INTER_AREA), np.uint8)
    return CutImage(image.Photograph(bgr, width_px, height_px), None, whole)


def parse_box(cells: Sequence[str], location: str) -> Cut:
    """Return the cut of a box from its left, top, right and bottom edge, in shares of the image's sides.

    location: CSV and line, for messages. Raises CalibrationError for an invalid box.
    """
    try:
        left, top, right, bottom = map(float, cells)
    except ValueError:
        left, top, right, bottom = np.nan, np.nan, np.nan, np.nan
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise CalibrationError(
            f"{location}: {','.join(cells)} is no box: write left,top,right,bottom in shares of the image, from 0 to 1"
        )
    return Cut(None, (left, top, right - left, bottom - top))


def read_cut(path: str, cut_text: str, limits: image.Limits, decode_px: int) -> CutImage:
    """Read a recorded image again. cut_text: from `Cut.text`. Raises OSError and the errors of `decode_cut`."""
    cut = msgspec.json.decode(cut_text, type=Cut) if cut_text else WHOLE
    return decode_cut(image.read_file(Path(path), limits), cut, limits, decode_px)
