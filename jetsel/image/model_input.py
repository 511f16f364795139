"""Converts an image to the input of one model: resizes, crops and normalises it."""

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
"""Limit of an input's side, before and after its crop: over four times that of any classifier; 0.2 GB in float32."""

_FLOAT_AREA_PIXELS = 512 * 512
"""Up to this size areas are averaged in float32, in which OpenCV is 1.3 times faster but needs 12 bytes a pixel."""


_PILLOW_KERNELS = {
    "antialiased-bilinear": Image.Resampling.BILINEAR,
    "antialiased-bicubic": Image.Resampling.BICUBIC,
}

SidePx = Annotated[int, msgspec.Meta(ge=1, le=MAX_SIDE_PX)]


class InputSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The input of one model, as its manifest describes it.

    resize: `shorter-side` scales both sides by one factor until the image covers the input, or its shorter side has
    `resize_px`, and `crop` takes the centre; `stretch` scales each side to the input's. interpolation: the antialiased
    ones are Pillow's, as in torchvision; the others are OpenCV's. mean, std: in units of 0..1, in the order of
    `channels`. Raises ValueError (msgspec: ValidationError, with the field's path) for contradictory values.
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
        """Shorter side that an image must have so that it is not enlarged for this model."""
        return self.resize_px or max(self.width_px, self.height_px)

    def __post_init__(self) -> None:
        if min(self.std) <= 0:
            raise ValueError(f"std is {self.std}; each must be over 0, for instance 0.229")
        if self.resize == "shorter-side" and self.crop == "none":
            raise ValueError('crop is "none", so the longer side would not fit; with "shorter-side" use "center"')
        if self.resize_px is not None and self.resize == "stretch":
            raise ValueError('resize_px is the shorter side before the crop; with "stretch" leave it out')
        if self.resize_px is not None and self.resize_px < max(self.width_px, self.height_px):
            raise ValueError(
                f"resize_px is {self.resize_px}, which leaves too little for {self.width_px} x {self.height_px}: "
                "it must be at least the longer of the two"
            )


def model_input(photograph: Photograph, spec: InputSpec) -> np.ndarray:
    """Return (1, 3, spec.height_px, spec.width_px) float32, C-contiguous, a new array: (level / 255 - mean) / std.

    When enlarging, `area` becomes bilinear. Memory stays near that of the input whatever the image's shape, since parts
    outside the crop are never resized.
    """
    resize = _resize_with_pillow if spec.interpolation.startswith("antialiased") else _resize_with_opencv
    levels = resize(photograph.bgr, spec).astype(np.float32, copy=False)
    height, width = levels.shape[:2]
    normalised = cv2.transform(levels, _normalisation(spec), _buffers.array("normalised", height, width))
    batch: np.ndarray = normalised.transpose(2, 0, 1)[np.newaxis].copy()
    return batch


class _StepBuffers(threading.local):
    """Reusable output arrays of one thread: to allocate one, OpenCV would wait for Python's global lock again."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}  # last array of each step

    def array(self, step: str, height: int, width: int) -> np.ndarray:
        """Return an uninitialised (height, width, 3) float32 array, shared by this thread's calls for this step."""
        array = self._arrays.get(step)
        if array is None or array.shape[:2] != (height, width):
            array = self._arrays[step] = np.empty((height, width, 3), np.float32)
        return array


_buffers = _StepBuffers()


@lru_cache(maxsize=64)  # families have few models
def _normalisation(spec: InputSpec) -> np.ndarray:
    """Return (3, 4) float32: the matrix that turns (B, G, R, 1), 0 to 255, into the model's normalised channels."""
    matrix = np.zeros((3, 4), np.float64)
    for channel, (mean, std) in enumerate(zip(spec.mean, spec.std, strict=True)):
        matrix[channel, channel if spec.channels == "bgr" else 2 - channel] = 1 / (255 * std)
        matrix[channel, 3] = -mean / std
    return matrix.astype(np.float32)


def _resize_with_opencv(bgr: np.ndarray, spec: InputSpec) -> np.ndarray:
    """Return (spec.height_px, spec.width_px, 3): the whole image stretched, or its centre scaled by one factor.

    The centre is cropped to the fewest whole pixels that cover the input, then resized, then cropped again, so that
    rounding does not distort it.
    """
    if spec.resize == "stretch":
        return _resize(bgr, spec.width_px, spec.height_px, spec.interpolation)
    height, width = bgr.shape[:2]
    source_crop, (scaled_width, scaled_height), final_crop = _centre_crop(height, width, spec)
    return _resize(bgr[source_crop], scaled_width, scaled_height, spec.interpolation)[final_crop]


@lru_cache(maxsize=64)  # all images of a camera have one size
def _centre_crop(
    height: int, width: int, spec: InputSpec
) -> tuple[tuple[slice, slice], tuple[int, int], tuple[slice, slice]]:
    """Return slices (rows, columns) of the image to resize, its new (width, height), and slices of that to keep."""
    numerator, denominator = _scale(height, width, spec)
    crop_width = min(width, -(-spec.width_px * denominator // numerator))
    crop_height = min(height, -(-spec.height_px * denominator // numerator))
    scaled_width, scaled_height = (round(side * numerator / denominator) for side in (crop_width, crop_height))
    source_crop = _centre(height, crop_height), _centre(width, crop_width)
    final_crop = _centre(scaled_height, spec.height_px), _centre(scaled_width, spec.width_px)
    return source_crop, (scaled_width, scaled_height), final_crop


def _scale(height: int, width: int, spec: InputSpec) -> tuple[int, int]:
    """Return the numerator and denominator of the scale, for both sides, at which the image covers the input."""
    if spec.resize_px is not None:
        return spec.resize_px, min(height, width)
    if spec.width_px * height >= spec.height_px * width:  # the width fits, and spare height is cropped
        return spec.width_px, width
    return spec.height_px, height


def _resize_with_pillow(bgr: np.ndarray, spec: InputSpec) -> np.ndarray:
    """Return (spec.height_px, spec.width_px, 3) uint8 by Pillow's `Image.resize`, with torchvision's size and crop.

    `reducing_gap` is not used: with 3.0, the mildest that Pillow proposes, levels of 12-megapixel images differ by up
    to 3.
    """
    height, width = bgr.shape[:2]
    size_px = (spec.height_px, spec.width_px)
    if spec.resize == "stretch":
        scaled = size_px
    else:
        numerator, denominator = _scale(height, width, spec)
        scaled_height, scaled_width = height * numerator // denominator, width * numerator // denominator
        scaled = max(spec.height_px, scaled_height), max(spec.width_px, scaled_width)
    (top, bottom), (left, right) = (
        _source_range(source_px, scaled_px, kept_px)
        for source_px, scaled_px, kept_px in zip((height, width), scaled, size_px, strict=True)
    )
    kernel = _PILLOW_KERNELS[spec.interpolation]
    image = Image.fromarray(bgr)  # the order of channels does not matter to Pillow
    if scaled[1] > width and scaled[0] < height:  # Pillow widens all rows first, too many in a tall image
        image = image.resize((width, spec.height_px), kernel, box=(0, top, width, bottom))
        top, bottom = 0, spec.height_px
    return np.asarray(image.resize((spec.width_px, spec.height_px), kernel, box=(left, top, right, bottom)))


def _source_range(source_px: int, scaled_px: int, kept_px: int) -> tuple[float, float]:
    """Return start and end of the centre crop along one side, in pixels before scaling. kept_px: its length after."""
    start = round((scaled_px - kept_px) / 2)
    return start * source_px / scaled_px, (start + kept_px) * source_px / scaled_px


def _centre(side_px: int, kept_px: int) -> slice:
    """Return the slice of the middle kept_px pixels of a side; an odd pixel is cut at the right or the bottom."""
    start = (side_px - kept_px) // 2
    return slice(start, start + kept_px)


def _resize(pixels: np.ndarray, width: int, height: int, interpolation: str) -> np.ndarray:
    """Resize to (height, width, 3), uint8 or float32; return the same array if it has this size."""
    if interpolation == "area":
        pixels = _shrink_by_area(pixels, min(width, pixels.shape[1]), min(height, pixels.shape[0]))
    if pixels.shape[:2] == (height, width):
        return pixels
    flag = cv2.INTER_CUBIC if interpolation == "bicubic" else cv2.INTER_LINEAR
    return cv2.resize(pixels, (width, height), interpolation=flag)


def _shrink_by_area(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """Reduce (height, width, 3) uint8 by averaging areas; a small image is averaged in float32, which is faster."""
    if pixels.shape[:2] == (height, width):
        return pixels
    shrunk = None
    if pixels.shape[0] * pixels.shape[1] <= _FLOAT_AREA_PIXELS:
        pixels, shrunk = pixels.astype(np.float32), _buffers.array("shrunk", height, width)
    return cv2.resize(pixels, (width, height), shrunk, interpolation=cv2.INTER_AREA)
