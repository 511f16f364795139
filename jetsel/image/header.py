"""Read what an image file says of itself, with Pillow's readers, and how many pixels decoding it will take.

Cheap enough for every request: no pixel is decoded. Pillow is bounded where a hostile file shows that it has to be
(tests/unit/image/test_bombs.py has the files): in how often it reads, since 15 MB of FF before a JPEG's picture are
read byte by byte; in EXIF, see jetsel/image/exif.py; and PNG, see jetsel/image/png.py.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import IO, NamedTuple, cast

from PIL import BmpImagePlugin, Image, JpegImagePlugin, WebPImagePlugin

from jetsel.errors import BadImageError, ImageTooLargeError
from jetsel.image.exif import UPRIGHT, orientation_of
from jetsel.image.limits import Limits, check_bytes, check_pixels, damaged
from jetsel.image.pixels import Pixels, check_layout

JPEG, PNG, WEBP, BMP = "JPEG", "PNG", "WebP", "BMP"

_MAX_READS = 20_000
"""A segment of a JPEG takes four; 10 MB of EXIF are 160 segments, and a colour profile has 255 at most."""
_SHOWN_BYTES = 1024  # of a segment; four tables of 16 bits have 516
_BMP_HEADER_BYTES = 300_000  # with the largest palette that Pillow reads
_UNCOMPRESSED = (0, 3)  # BI_RGB, BI_BITFIELDS (Microsoft: BITMAPINFOHEADER)
_ANIMATED = 0x02  # a flag of a WebP's first chunk, VP8X (RFC 9649, 2.7.1)
_ANIMATION_COPIES = 4  # of the canvas: Pillow holds two of 4 bytes a pixel, and copies the first frame


class Header(NamedTuple):
    """What a file says of itself: its format, and its stored size in pixels, EXIF orientation (1 to 8) not applied.

    scan_at: where the data of a JPEG's first scan begins, 0 where there is none. is_streamed: that scan holds the
    whole picture, so that it is decoded row by row, at a reduced size too. is_animated: of a WebP. pixels_end: of a
    BMP, which must be as long.
    """

    kind: str
    width: int
    height: int
    orientation: int = UPRIGHT
    scan_at: int = 0
    is_streamed: bool = False
    is_animated: bool = False
    pixels_end: int = 0


class Measured(NamedTuple):
    """The pixels that decoding takes in memory, of 3 bytes each or about as much; `header`: None for raw pixels."""

    pixels: int
    header: Header | None = None


def measure(data: memoryview, pixels: Pixels | None, limits: Limits, needed_px: int) -> Measured:
    """Return what decoding will take, by the header alone; what stands behind that is for `decode` to check.

    data: an image file, or raw pixels, which lie as `pixels` says. A JPEG that is decoded straight to 1/n of its size
    counts as that many; one whose coefficients libjpeg must hold whole (ITU-T T.81: progressive, or a scan for each
    component) counts in full, as other formats do, and an animation four times.
    Raises BadImageError (no header of a kind that is read, or a damaged one) and ImageTooLargeError.
    """
    check_bytes(len(data), limits)
    if pixels is not None:
        check_layout(pixels, len(data), limits)
        return Measured(pixels.width * pixels.height)
    header = read_header(data, limits)
    n = reduction(header.width, header.height, needed_px) if header.is_streamed else 1
    copies = _ANIMATION_COPIES if header.is_animated else 1
    return Measured(copies * -(-header.width // n) * -(-header.height // n), header)


def read_header(data: memoryview, limits: Limits) -> Header:
    """Return a file's header; raises BadImageError and ImageTooLargeError as `measure` does."""
    kind, reader = _reader_of(data)
    try:
        header = reader(data)
    except Image.DecompressionBombError as error:  # Pillow's own limit, which is over what any WebP photograph has
        raise ImageTooLargeError(f"the {kind} has too many pixels: {error}; send a smaller one") from None
    except (SyntaxError, OSError, ValueError, struct.error) as error:
        raise damaged(kind, f"its header is truncated or cannot be read ({error})") from None
    if header.is_animated:
        limits = Limits(limits.max_bytes, limits.max_pixels // _ANIMATION_COPIES)
    check_pixels(header.width, header.height, limits)
    return header


def reduction(width: int, height: int, needed_px: int) -> int:
    """Return the largest of 8, 4, 2 and 1 that leaves the shorter side `needed_px` pixels (libjpeg rounds sides up)."""
    shorter = min(width, height)
    for n in (8, 4, 2):  # for every request: no generator
        if -(-shorter // n) >= needed_px:
            return n
    return 1


class _Bounded:
    """A file in memory, which is not copied, that ends after so many reads, however small each is.

    Of large segments EXIF alone is shown: Pillow would take 15 MB of other ones apart for a second.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = self._reads = 0

    def read(self, size: int) -> bytes:
        self._reads += 1
        found = bytes(self._data[self._at : self._at + size]) if self._reads <= _MAX_READS else b""
        self._at += len(found)
        return found if len(found) <= _SHOWN_BYTES or found.startswith(b"Exif") else bytes(len(found))

    def tell(self) -> int:
        return self._at


class _Jpeg(JpegImagePlugin.JpegImageFile):
    """Pillow's reader, which asks EXIF for the resolution, without EXIF; one of two frame headers is refused."""

    _components = 0

    @property
    def layers(self) -> int:
        return self._components

    @layers.setter
    def layers(self, components: int) -> None:
        if self._components:
            raise SyntaxError("two frame headers")
        self._components = components

    def getexif(self) -> Image.Exif:
        return Image.Exif()


def _jpeg(data: memoryview) -> Header:
    file = _Bounded(data)
    image = _Jpeg(cast(IO[bytes], file))
    if not image.tile:
        return Header(JPEG, *image.size)  # it ends before its first scan
    scan_at = file.tell()
    # The header of a scan (T.81, B.2.3) says its own length and how many components are in it.
    all_at_once = struct.pack(">HB", 6 + 2 * image.layers, image.layers)
    is_streamed = "progressive" not in image.info and data[scan_at - 6 - 2 * image.layers :][:3] == all_at_once
    return Header(JPEG, *image.size, orientation_of(image.info.get("exif", b"")), scan_at, is_streamed)


def _png(data: memoryview) -> Header:
    name, width, height = struct.unpack_from(">4sII", data, 12)
    if name != b"IHDR":
        raise SyntaxError("its first chunk is not IHDR")
    return Header(PNG, width, height)


def _webp(data: memoryview) -> Header:
    image = WebPImagePlugin.WebPImageFile(io.BytesIO(data))
    is_animated = bytes(data[12:16]) == b"VP8X" and bool(data[20] & _ANIMATED)
    return Header(WEBP, *image.size, orientation_of(image.info.get("exif", b"")), is_animated=is_animated)


def _bmp(data: memoryview) -> Header:
    image = BmpImagePlugin.BmpImageFile(io.BytesIO(data[:_BMP_HEADER_BYTES]))
    if image.info["compression"] not in _UNCOMPRESSED:
        raise ValueError("its pixels are compressed, which is not read: save it uncompressed, or as PNG")
    _, _, offset, (_, row_bytes, _) = cast(tuple[str, object, int, tuple[str, int, int]], image.tile[0])
    return Header(BMP, *image.size, pixels_end=offset + row_bytes * image.height)


_READERS: dict[bytes, tuple[str, Callable[[memoryview], Header]]] = {
    b"\xff\xd8\xff": (JPEG, _jpeg),
    b"\x89PNG\r\n\x1a\n": (PNG, _png),
    b"RIFF": (WEBP, _webp),
    b"BM": (BMP, _bmp),
}
"""By the first bytes of a file: its format's name, and what reads its header."""


def _reader_of(data: memoryview) -> tuple[str, Callable[[memoryview], Header]]:
    start = bytes(data[:12])
    for magic, reader in _READERS.items():
        if start.startswith(magic) and (magic != b"RIFF" or start.endswith(b"WEBP")):
            return reader
    raise BadImageError(
        f"the image begins with {start[:4]!r}: it is no JPEG, PNG, WebP or BMP file, which are what is read"
    )
