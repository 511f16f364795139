"""Which of the four formats a file has, by its first bytes."""

from __future__ import annotations

from collections.abc import Callable

from jetsel.errors import BadImageError
from jetsel.image import bmp, jpeg, png, webp
from jetsel.image.header import Header
from jetsel.image.limits import Limits

Reader = Callable[[memoryview, Limits], Header]


def format_of(data: memoryview) -> tuple[str, Reader]:
    """Return the format's name and its parser; raises BadImageError for one that is not read."""
    start = bytes(data[:12])
    if start.startswith(b"\xff\xd8\xff"):
        return jpeg.KIND, jpeg.read
    if start.startswith(png.SIGNATURE):
        return png.KIND, png.read
    if start.startswith(b"RIFF") and start.endswith(b"WEBP"):
        return webp.KIND, webp.read
    if start.startswith(b"BM"):
        return bmp.KIND, bmp.read
    raise BadImageError(
        f"the image begins with {start[:4]!r}: it is no JPEG, PNG, WebP or BMP file, which are what is read"
    )
