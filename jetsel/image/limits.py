"""How large an image may be, and the errors that say what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.base.files import open_regular

MAX_SIDE_PX = 65_535
"""JPEG's own largest side (ITU-T T.81, B.2.2); it bounds the tables, as long as a side, that OpenCV's resize makes."""


class Limits(msgspec.Struct, frozen=True):
    """The largest image that is accepted, in bytes as sent and in pixels as its header states them."""

    max_bytes: int
    max_pixels: int


def check_bytes(n_bytes: int, limits: Limits) -> None:
    """Raise BadImageError if there are no bytes, ImageTooLargeError if there are too many."""
    if n_bytes == 0:
        raise BadImageError("the image is empty: 0 bytes; send a whole JPEG, PNG or WebP file")
    if n_bytes > limits.max_bytes:
        raise ImageTooLargeError(
            f"the image has {n_bytes} bytes and at most {limits.max_bytes} are accepted;"
            " send a smaller one or raise [server] max_image_mb"
        )


def check_pixels(width: int, height: int, limits: Limits) -> None:
    """Raise BadImageError if the image has no area, ImageTooLargeError if it has too much."""
    if width <= 0 or height <= 0:
        raise BadImageError(f"the image is damaged: its header gives {width} x {height} pixels")
    if width * height > limits.max_pixels:
        raise ImageTooLargeError(
            f"the image has {width} x {height} = {width * height} pixels and at most {limits.max_pixels} are accepted;"
            " send a smaller one or raise [server] max_image_megapixels"
        )
    if max(width, height) > MAX_SIDE_PX:
        raise ImageTooLargeError(
            f"the image has {width} x {height} pixels, and no side may exceed {MAX_SIDE_PX}, regardless of [server] "
            "max_image_megapixels; send a smaller one"
        )


def truncated(kind: str, where: str) -> BadImageError:
    """Return the error for a file that ends too early."""
    return BadImageError(f"the {kind} is truncated: it ends {where}; send the whole file")


def damaged(kind: str, why: str) -> BadImageError:
    """Return the error for a file that contradicts its own format."""
    return BadImageError(f"the {kind} is damaged: {why}; save or send it again")


def read_file(path: Path, limits: Limits) -> bytes:
    """Return a regular file's bytes, or enough of them that `decode` rejects it as too large; raises OSError."""
    with open_regular(path) as file:
        return file.read(limits.max_bytes + 1)
