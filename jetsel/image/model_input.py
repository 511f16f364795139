"""Bring a photograph into the shape that one model takes: resized, cropped, normalised."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Annotated, Literal

import cv2
import msgspec
import numpy as np
from PIL import Image

from jetsel.image.pixels import Photograph

MAX_SIDE_PX = 4096
"""Of an input, before and after its crop: over four times what any classifier takes, and 0.2 GB in float32."""

_FLOAT_AREA_PIXELS = 512 * 512
"""Up to here areas are averaged in float32: OpenCV is 1.3 times faster at it than in uint8, at 12 bytes a pixel."""


_PILLOW_KERNELS = {
    "antialiased-bilinear": Image.Resampling.BILINEAR,
    "antialiased-bicubic": Image.Resampling.BICUBIC,
}

SidePx = Annotated[int, msgspec.Meta(ge=1, le=MAX_SIDE_PX)]


class InputSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one model takes; stands in its manifest.

    resize: `shorter-side` scales both sides alike until the photograph covers the input, or until its shorter side has
    `resize_px`, and `crop` takes the centre; `stretch` scales each side to the input's. interpolation: the antialiased
    ones are Pillow's, which torchvision uses; the others OpenCV's. mean and std: in units of 0..1, in the order that
    `channels` says.
    Raises ValueError (msgspec: ValidationError, with the field's path) for what no model can take.
    """

    width_px: SidePx
    height_px: SidePx
    resize: Literal["shorter-side", "stretch"]
    interpolation: Literal["area", "bilinear", "bicubic", "antialiased-bilinear", "antialiased-bicubic"]
    crop: Literal["center", "none"]
    channels: Literal["rgb", "bgr"]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    resize_px: SidePx | None = None

    @property
    def shorter_px(self) -> int:
        """The shorter side below which a photograph would have to be enlarged, or may have to."""
        return self.resize_px or max(self.width_px, self.height_px)

    def __post_init__(self) -> None:
        if min(self.std) <= 0:
            raise ValueError(f"std is {self.std}; each must be over 0, for instance 0.229")
        if self.resize == "shorter-side" and self.crop == "none":
            raise ValueError(
                'crop is "none", so the longer side would exceed the input; with "shorter-side" use "center"'
            )
        if self.resize_px is not None and self.resize == "stretch":
            raise ValueError('resize_px is the shorter side before the crop; with "stretch" leave it out')
        if self.resize_px is not None and self.resize_px < max(self.width_px, self.height_px):
            raise ValueError(
                f"resize_px is {self.resize_px}, which leaves too little for {self.width_px} x {self.height_px}: "
                "it must be at least the longer of the two"
            )


def model_input(photograph: Photograph, spec: InputSpec) -> np.ndarray:
    """Return (1, 3, spec.height_px, spec.width_px) float32, C-contiguous, the caller's own: (level / 255 - mean) / std.

    If sides are enlarged, `area` has no meaning and bilinear is used. Memory stays near that of the input, whatever
    the photograph's shape: what will be cropped away is never resized.
    """
    resize = _antialiased if spec.interpolation.startswith("antialiased") else _resized_by_opencv
    levels = resize(photograph.bgr, spec).astype(np.float32, copy=False)
    height, width = levels.shape[:2]
    normalised = cv2.transform(levels, _normalisation(spec), _between.array("normalised", height, width))
    batch: np.ndarray = normalised.transpose(2, 0, 1)[np.newaxis].copy()
    return batch


class _Between(threading.local):
    """One thread's arrays for the steps in between: to allocate its own, OpenCV waits for Python's lock once more."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}  # by step, the last

    def array(self, step: str, height: int, width: int) -> np.ndarray:
        """Return (height, width, 3) float32 of any content, which this thread's next call for the step gives again."""
        array = self._arrays.get(step)
        if array is None or array.shape[:2] != (height, width):
            array = self._arrays[step] = np.empty((height, width, 3), np.float32)
        return array


_between = _Between()


@lru_cache(maxsize=64)  # families have a handful of models
def _normalisation(spec: InputSpec) -> np.ndarray:
    """Return (3, 4) float32: from a pixel's BGR levels and 1 to its normalised channels, in the model's order."""
    matrix = np.zeros((3, 4), np.float64)
    for channel, (mean, std) in enumerate(zip(spec.mean, spec.std, strict=True)):
        matrix[channel, channel if spec.channels == "bgr" else 2 - channel] = 1 / (255 * std)
        matrix[channel, 3] = -mean / std
    return matrix.astype(np.float32)


def _resized_by_opencv(bgr: np.ndarray, spec: InputSpec) -> np.ndarray:
    """Return the input's levels: the whole, stretched, or the centre, both of whose sides are scaled by one factor.

    The centre is cropped to the fewest whole pixels that cover the input, so that no rounding distorts it, then
    resized, then cropped to the input.
    """
    if spec.resize == "stretch":
        return _resized(bgr, spec.width_px, spec.height_px, spec.interpolation)
    height, width = bgr.shape[:2]
    before, (scaled_width, scaled_height), after = _cover(height, width, spec)
    return _resized(bgr[before], scaled_width, scaled_height, spec.interpolation)[after]


@lru_cache(maxsize=64)  # a camera's photographs are all of one size
def _cover(
    height: int, width: int, spec: InputSpec
) -> tuple[tuple[slice, slice], tuple[int, int], tuple[slice, slice]]:
    """Return the part that is resized, the (width, height) that it is given, and the part of that which is kept."""
    to, of = _factor(height, width, spec)
    taken_width, taken_height = min(width, -(-spec.width_px * of // to)), min(height, -(-spec.height_px * of // to))
    scaled_width, scaled_height = round(taken_width * to / of), round(taken_height * to / of)
    before = _centre(height, taken_height), _centre(width, taken_width)
    after = _centre(scaled_height, spec.height_px), _centre(scaled_width, spec.width_px)
    return before, (scaled_width, scaled_height), after


def _factor(height: int, width: int, spec: InputSpec) -> tuple[int, int]:
    """Return by what both sides are multiplied and divided."""
    if spec.resize_px is not None:
        return spec.resize_px, min(height, width)
    if spec.width_px * height >= spec.height_px * width:  # the width fits, height is left over
        return spec.width_px, width
    return spec.height_px, height


def _antialiased(bgr: np.ndarray, spec: InputSpec) -> np.ndarray:
    """Return the input's levels as Pillow's `Image.resize` makes them; size and crop are rounded as in torchvision.

    No `reducing_gap`: with 3.0, the gentlest that Pillow proposes, levels of 12-megapixel images differ by up to 3.
    """
    height, width = bgr.shape[:2]
    size_px = (spec.height_px, spec.width_px)
    if spec.resize == "stretch":
        scaled = size_px
    else:
        to, of = _factor(height, width, spec)
        scaled = (max(spec.height_px, height * to // of), max(spec.width_px, width * to // of))
    (top, bottom), (left, right) = (
        _source_range(source_px, scaled_px, kept_px)
        for source_px, scaled_px, kept_px in zip((height, width), scaled, size_px, strict=True)
    )
    kernel = _PILLOW_KERNELS[spec.interpolation]
    image = Image.fromarray(bgr)  # Pillow treats the three channels alike, so their order does not matter
    if scaled[1] > width and scaled[0] < height:  # Pillow widens each row first, and a tall image has too many
        image = image.resize((width, spec.height_px), kernel, box=(0, top, width, bottom))
        top, bottom = 0, spec.height_px
    return np.asarray(image.resize((spec.width_px, spec.height_px), kernel, box=(left, top, right, bottom)))


def _source_range(source_px: int, scaled_px: int, kept_px: int) -> tuple[float, float]:
    """Return where the centre crop of `kept_px` begins and ends on a side before that side is scaled."""
    first = round((scaled_px - kept_px) / 2)
    return first * source_px / scaled_px, (first + kept_px) * source_px / scaled_px


def _centre(side_px: int, kept_px: int) -> slice:
    """Return the middle of a side; if the margin is odd, the spare pixel is left over at the right or the bottom."""
    first = (side_px - kept_px) // 2
    return slice(first, first + kept_px)


def _resized(pixels: np.ndarray, width: int, height: int, interpolation: str) -> np.ndarray:
    """Return (height, width, 3), uint8 or float32; the very same array if it has this size."""
    if interpolation == "area":
        pixels = _shrunk_by_area(pixels, min(width, pixels.shape[1]), min(height, pixels.shape[0]))
    if pixels.shape[:2] == (height, width):
        return pixels
    flag = cv2.INTER_CUBIC if interpolation == "bicubic" else cv2.INTER_LINEAR
    return cv2.resize(pixels, (width, height), interpolation=flag)


def _shrunk_by_area(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    if pixels.shape[:2] == (height, width):
        return pixels
    shrunk = None
    if pixels.shape[0] * pixels.shape[1] <= _FLOAT_AREA_PIXELS:
        pixels, shrunk = pixels.astype(np.float32), _between.array("shrunk", height, width)
    return cv2.resize(pixels, (width, height), shrunk, interpolation=cv2.INTER_AREA)
