"""How many pixels a photograph will take in memory, by the header of its file: cheap enough for every request."""

from __future__ import annotations

from jetsel.image import bmp, jpeg, png, webp
from jetsel.image.decode import format_of, reduction
from jetsel.image.limits import Limits, check_bytes, check_pixels
from jetsel.image.pixels import Pixels, check_layout


def measure(data: memoryview, pixels: Pixels | None, limits: Limits, needed_px: int) -> int:
    """Return the pixels of the largest array that decoding makes, of 3 bytes each or about as much.

    data: an image file, or raw pixels, which lie as `pixels` says. A JPEG that is decoded straight to 1/n of its size
    counts as that many; one whose coefficients libjpeg must hold whole (ITU-T T.81: progressive, or a scan for each
    component; 2 bytes for each of 1.5 to 3 samples a pixel) counts in full, as other formats do.
    Only the header is read. Raises BadImageError (no header of a kind that is read, or a damaged one) and
    ImageTooLargeError; what stands behind the header is for `decode` to check.
    """
    check_bytes(len(data), limits)
    if pixels is not None:
        check_layout(pixels, len(data), limits)
        return pixels.width * pixels.height
    kind, _ = format_of(data)
    if kind == jpeg.KIND:
        width, height, is_streamed = jpeg.size(data, limits)
        n = reduction(width, height, needed_px) if is_streamed else 1
        return -(-width // n) * -(-height // n)
    width, height = _SIZES[kind](data)
    check_pixels(width, height, limits)
    return width * height


_SIZES = {png.KIND: png.size, webp.KIND: webp.size, bmp.KIND: bmp.size}
