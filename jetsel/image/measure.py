"""How many pixels a photograph will take in memory, by the header of its file: cheap enough for every request."""

from __future__ import annotations

from typing import NamedTuple

from jetsel.image import bmp, jpeg, png, webp
from jetsel.image.formats import format_of
from jetsel.image.limits import Limits, check_bytes, check_pixels
from jetsel.image.pixels import Pixels, check_layout


class Measured(NamedTuple):
    """The pixels of the largest array that decoding makes, of 3 bytes each or about as much.

    start: where a JPEG was read up to, so that `decode` goes on from there; None for what has no such walk.
    """

    pixels: int
    start: jpeg.Start | None = None


def measure(data: memoryview, pixels: Pixels | None, limits: Limits, needed_px: int) -> Measured:
    """Return what decoding will take: `decode` refuses a file whose content then asks for more.

    data: an image file, or raw pixels, which lie as `pixels` says. A JPEG that is decoded straight to 1/n of its size
    counts as that many; one whose coefficients libjpeg must hold whole (ITU-T T.81: progressive, or a scan for each
    component; 2 bytes for each of 1.5 to 3 samples a pixel) counts in full, as other formats do.
    Only the header is read. Raises BadImageError (no header of a kind that is read, or a damaged one) and
    ImageTooLargeError; what stands behind the header is for `decode` to check.
    """
    check_bytes(len(data), limits)
    if pixels is not None:
        check_layout(pixels, len(data), limits)
        return Measured(pixels.width * pixels.height)
    kind, _ = format_of(data)
    if kind == jpeg.KIND:
        start = jpeg.begin(data, limits)
        n = reduction(start.width, start.height, needed_px) if start.is_streamed else 1
        return Measured(-(-start.width // n) * -(-start.height // n), start)
    width, height = _SIZES[kind](data)
    check_pixels(width, height, limits)
    return Measured(width * height)


def reduction(width: int, height: int, needed_px: int) -> int:
    """Return the largest of 8, 4, 2 and 1 that leaves the shorter side `needed_px` pixels (libjpeg rounds sides up)."""
    shorter = min(width, height)
    for n in (8, 4, 2):  # for every request: no generator
        if -(-shorter // n) >= needed_px:
            return n
    return 1


_SIZES = {png.KIND: png.size, webp.KIND: webp.size, bmp.KIND: bmp.size}
