"""How many bytes the pixels of a PNG must unpack to, and whether they do: a few megabytes may hold gigabytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from jetsel.image.header import damaged
from jetsel.image.limits import Limits, check_pixels

KIND = "PNG"
_HEADER = struct.Struct(">IIBBBBB")  # width, height, depth, colour type, compression, filter and interlace methods
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type (PNG, third edition, 11.2.1)
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE = 3
_STEP_BYTES = 1 << 18  # unpacked at a time, so that memory stays flat

# Adam7 (8.1): of each pass the first column and row, and how far apart its columns and rows are.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


class Layout(NamedTuple):
    """What a PNG's header says of its pixels."""

    width: int
    height: int
    bits: int  # of one pixel
    has_palette: bool
    is_interlaced: bool

    @property
    def unpacked_bytes(self) -> int:
        """How many bytes its rows are, each after the byte that names its filter."""
        if not self.is_interlaced:
            return self._rows_bytes(self.width, self.height)
        sizes = (
            (-(-max(0, self.width - left) // across), -(-max(0, self.height - top) // down))
            for left, top, across, down in _PASSES
        )
        return sum(self._rows_bytes(width, height) for width, height in sizes)

    def _rows_bytes(self, width: int, height: int) -> int:
        return height * (1 + (width * self.bits + 7) // 8) if width else 0


def layout_in(header: memoryview, limits: Limits) -> Layout:
    """Read the content of a PNG's header chunk; raises BadImageError (damaged) and ImageTooLargeError."""
    if len(header) != _HEADER.size:
        raise damaged(KIND, f"its header has {len(header)} bytes instead of {_HEADER.size}")
    width, height, depth, colour, compression, filtering, interlacing = _HEADER.unpack(header)
    check_pixels(width, height, limits)
    if depth not in _DEPTHS.get(colour, ()):
        raise damaged(KIND, f"its header says {depth} bits of colour type {colour}")
    if (compression, filtering) != (0, 0) or interlacing > 1:
        raise damaged(KIND, f"its header says methods {compression}, {filtering}, {interlacing}, which there are not")
    return Layout(width, height, depth * _CHANNELS[colour], colour == _PALETTE, bool(interlacing))


def check_amount(pixels: Iterable[memoryview], layout: Layout) -> None:
    """Raise BadImageError unless the content of the pixel chunks unpacks to what the header says, to the byte.

    libpng would unpack, and throw away, whatever follows the last row: 16 MB may hold 16 GB, which takes half a minute.
    """
    unpacking, left = zlib.decompressobj(), layout.unpacked_bytes
    try:
        for content in pixels:
            packed: bytes | memoryview = content
            unpacked_bytes = _STEP_BYTES
            while not unpacking.eof and (len(packed) or unpacked_bytes == _STEP_BYTES):
                unpacked_bytes = len(unpacking.decompress(packed, _STEP_BYTES))
                left -= unpacked_bytes
                if left < 0:
                    raise damaged(KIND, "it holds more pixels than its header says")
                packed = unpacking.unconsumed_tail
    except zlib.error as error:
        raise damaged(KIND, f"its pixels cannot be unpacked ({error})") from None
    if left or not unpacking.eof:
        raise damaged(KIND, "it holds fewer pixels than its header says")
