"""What models are shown of an image: all of it, a reduced copy, or a detector's box of it."""

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
    """A part of an image that is recorded as an image of its own; without either, the whole image.

    shorter_px: shorter side of a reduced copy. box: x, y, width and height in shares of the image's sides.
    """

    shorter_px: int | None = None
    box: tuple[float, float, float, float] | None = None

    @property
    def text(self) -> str:
        """What the recording stores; empty for the whole image."""
        return "" if self == WHOLE else msgspec.json.encode(self).decode()

    def key(self, sha256: str) -> str:
        """Return what identifies this part of a file: the file's own hash for the whole image."""
        return sha256 if self == WHOLE else hashlib.sha256(f"{sha256} {self.text}".encode()).hexdigest()


WHOLE = Cut()


class TooSmallError(BadImageError):
    """An image that has no smaller copy of the size that was asked for."""


def with_sizes(cuts: Sequence[Cut], sizes: Sequence[int]) -> list[Cut]:
    """Return the cuts, and of whole images a copy of each size too."""
    return [size for cut in cuts for size in (cut, *(Cut(one) for one in sizes if cut == WHOLE))]


class Shown(NamedTuple):
    """What models are shown. data: the file, None if only a part of it is shown. whole: the image, decoded."""

    photograph: image.Photograph
    data: bytes | None
    whole: image.Photograph

    def extract(self, limits: image.Limits, features_px: int, names: Sequence[str] = NAMES) -> NDArray[np.float32]:
        """Extract features as the daemon does: decoded anew if they see more pixels than the models."""
        view = self.photograph if self.data is None else image.of_area(self.photograph, self.data, limits, features_px)
        return extract(view.bgr, names, features_px, (self.photograph.width_px, self.photograph.height_px))


def show(data: bytes, cut: Cut, limits: image.Limits, decode_px: int) -> Shown:
    """Decode an image, and cut it as the daemon does. decode_px: see `image.decode`.

    Raises BadImageError, ImageTooLargeError, or TooSmallError if a reduced copy would not be smaller.
    """
    whole = image.decode(data, limits, decode_px if cut == WHOLE else limits.max_pixels)
    if cut.box is not None:
        return Shown(image.crop(whole, cut.box, "shares"), None, whole)
    if cut.shorter_px is None:
        return Shown(whole, data, whole)
    if min(whole.width_px, whole.height_px) <= cut.shorter_px:
        raise TooSmallError(f"too small: its shorter side is not above {cut.shorter_px} pixels")
    width_px, height_px = image.smaller_size(whole.width_px, whole.height_px, cut.shorter_px)
    bgr = np.asarray(cv2.resize(whole.bgr, (width_px, height_px), interpolation=cv2.INTER_AREA), np.uint8)
    return Shown(image.Photograph(bgr, width_px, height_px), None, whole)


def box_of(cells: Sequence[str], where: str) -> Cut:
    """Return the box of a detector's left, top, right and bottom, in shares. where: the CSV and its line.

    Raises CalibrationError.
    """
    try:
        left, top, right, bottom = map(float, cells)
    except ValueError:
        left, top, right, bottom = np.nan, np.nan, np.nan, np.nan
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise CalibrationError(
            f"{where}: {','.join(cells)} is no box: write left,top,right,bottom in shares of the image, from 0 to 1"
        )
    return Cut(None, (left, top, right - left, bottom - top))


def read_shown(path: str, text: str, limits: image.Limits, decode_px: int) -> Shown:
    """Read a recorded image again. text: see Cut. Raises OSError, ValueError, and as `show` does."""
    cut = msgspec.json.decode(text, type=Cut) if text else WHOLE
    return show(image.read_file(Path(path), limits), cut, limits, decode_px)
