"""Converts a caller's image (path, encoded bytes or array) to a message's second frame and, if raw, its layout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.base.files import open_regular
from jetsel.wire import Pixels

MEGABYTE = 1_000_000  # as in the daemon's server.max_image_mb

Channels = Literal["bgr", "rgb"]


class ArrayLike(Protocol):
    """An array that numpy can use without copying, such as its own arrays and Pillow's images."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Shape, type and address in numpy's array interface."""


Photograph = str | os.PathLike[str] | bytes | bytearray | memoryview | ArrayLike
"""A path; a whole JPEG, PNG or WebP; or pixels, (height, width, 3) or gray (height, width), uint8."""


class Payload(NamedTuple):
    """The image as the second frame of a request, and the layout of raw pixels, None if the image is encoded."""

    data: bytes | memoryview
    pixels: Pixels | None


def payload_of(image: Photograph, channels: Channels, max_image_mb: float) -> Payload:
    """Return an image as it is sent. An array has the shape (height, width[, 3]), uint8, in the order of `channels`.

    Contiguous memory is not copied and must not change until the answer arrives. Raises OSError if a path is
    unreadable, BadImageError if an array is not an image, ImageTooLargeError.
    """
    if isinstance(image, str | os.PathLike):
        return _from_file(image, max_image_mb)
    view = _contiguous(image)
    if 0 in (view.shape or ()):
        raise BadImageError("the image is empty: pass a whole file, or an array with pixels")
    if view.format not in ("B", "c"):
        raise BadImageError(f"the array holds {view.format!r} values: convert it to uint8, 0 to 255")
    if view.nbytes > max_image_mb * MEGABYTE:
        raise _too_large("the image", view.nbytes, max_image_mb)
    if view.ndim == 1:
        return Payload(view, None)
    return Payload(view.cast("B"), _layout(view.shape or (), _channel_order(image, channels)))


def _from_file(path: str | os.PathLike[str], max_image_mb: float) -> Payload:
    """Read an encoded image. Raises OSError, or ImageTooLargeError before more than the limit is read."""
    max_bytes = int(max_image_mb * MEGABYTE)
    with open_regular(Path(path)) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(max_bytes + 1)
    if size > max_bytes:
        raise _too_large(str(path), size, max_image_mb)
    return Payload(data, None)


def _contiguous(image: Any) -> memoryview:
    """Return the bytes or the pixels in contiguous memory; other layouts, such as flipped views, are copied."""
    if not isinstance(image, bytes | bytearray | memoryview) and not hasattr(image, "__array_interface__"):
        raise BadImageError(f"a {type(image).__name__} is not an image: pass a path, encoded bytes or a uint8 array")
    try:
        view = memoryview(image)
        if view.c_contiguous:
            return view
    except (TypeError, ValueError):
        pass  # an array without a buffer
    import numpy as np  # imported here, since paths and bytes do not need it

    return np.ascontiguousarray(image).data


def _channel_order(image: object, channels: Channels) -> Channels:
    """Return the order of the channels; an image that states its own, as Pillow's do, overrides `channels`."""
    bands = getattr(image, "getbands", None)
    if bands is not None:
        if bands() not in (("R", "G", "B"), ("L",)):
            raise BadImageError(f"the image's bands are {', '.join(bands())}: convert it first, image.convert('RGB')")
        return "rgb"
    if channels not in ("bgr", "rgb"):
        raise BadImageError(f"channels is {channels!r}: use 'bgr' or 'rgb'")
    return channels


def _layout(shape: tuple[int, ...], channels: Channels) -> Pixels:
    """Return the layout of contiguous pixels: (height, width), (height, width, 1) or (height, width, 3)."""
    if len(shape) == 2 or (len(shape) == 3 and shape[2] == 1):
        return Pixels("gray8", width=shape[1], height=shape[0], stride=shape[1])
    if len(shape) == 3 and shape[2] == 3:
        return Pixels("rgb8" if channels == "rgb" else "bgr8", width=shape[1], height=shape[0], stride=shape[1] * 3)
    raise BadImageError(f"the array has the shape {shape}: pass one of shape (height, width, 3) or (height, width)")


def _too_large(name: str, size: int, max_image_mb: float) -> ImageTooLargeError:
    return ImageTooLargeError(
        f"{name} has {size / MEGABYTE:.1f} MB and exceeds the limit of {max_image_mb:g} MB: send a smaller image, or "
        "raise [server] max_image_mb of the daemon and max_image_mb of the client"
    )
