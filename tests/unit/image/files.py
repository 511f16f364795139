"""Image files for the tests of jetsel.image, built byte by byte where OpenCV cannot write what a test needs."""

import struct
import zlib

import cv2
import numpy as np

from jetsel.image import Limits

LIMITS = Limits(max_bytes=4_000_000, max_pixels=1_000_000)


def drawing(width: int, height: int, seed: int = 0) -> np.ndarray:
    """A smooth picture with a bright square in the upper left, so that no two of its eight orientations are alike."""
    y, x = np.mgrid[:height, :width]
    bgr = np.stack([40 + 60 * x / width, 60 + 40 * y / height, 80 + 20 * np.sin(x / 9 + seed)], axis=2)
    bgr[: max(1, height // 3), : max(1, width // 4)] += 90
    return bgr.round().astype(np.uint8)


def encoded(extension: str, bgr: np.ndarray, *params: int) -> bytes:
    done, data = cv2.imencode(extension, bgr, params)
    assert done
    return data.tobytes()


def noise(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=np.uint8)


def jpeg_segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", 2 + len(content)) + content


def flat_jpeg(components: int, width: int = 8, height: int = 8) -> bytes:
    """A JPEG of one 8 x 8 block for each component, all coefficients 0, so each sample is 128 (ITU-T T.81, annex B).

    The one code of either table is the bit 0: a DC difference of 0, then end of block; so a block is two bits.
    """
    ids = range(1, components + 1)
    table = bytes([1] + [0] * 15 + [0])
    return b"".join(
        (
            b"\xff\xd8",
            jpeg_segment(0xDB, b"\0" + b"\1" * 64),
            jpeg_segment(
                0xC0, struct.pack(">BHHB", 8, height, width, components) + b"".join(bytes((i, 0x11, 0)) for i in ids)
            ),
            jpeg_segment(0xC4, b"\x00" + table + b"\x10" + table),
            jpeg_segment(0xDA, bytes((components,)) + b"".join(bytes((i, 0)) for i in ids) + b"\0\x3f\0"),
            bytes((0xFF >> 2 * components,)) if components < 4 else b"\0",
            b"\xff\xd9",
        )
    )


def tiff(orientation: int, order: str = ">") -> bytes:
    start = {">": b"MM\0*", "<": b"II*\0"}[order]
    return start + struct.pack(f"{order}IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def with_app1(jpeg: bytes, content: bytes) -> bytes:
    return jpeg[:2] + jpeg_segment(0xE1, content) + jpeg[2:]


def png_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width: int, height: int, depth: int, colour: int, raw: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    """A PNG of `raw`, its rows each after a filter byte 0; `before` and `after` are whole chunks around the pixels."""
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    pixels = png_chunk(b"IDAT", zlib.compress(raw))
    return b"\x89PNG\r\n\x1a\n" + header + before + pixels + after + png_chunk(b"IEND", b"")


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Where the pixels of each pass of an interlaced PNG begin, from the left and the top, and their steps."""


def interlaced(bgr: np.ndarray) -> bytes:
    """An interlaced PNG: its rows are those of the seven passes, each with a filter byte."""
    raw = b"".join(
        b"\0" + row[:, ::-1].tobytes() for left, top, across, down in ADAM7 for row in bgr[top::down, left::across]
    )
    whole = png(bgr.shape[1], bgr.shape[0], 8, 2, raw)
    return whole[:8] + png_chunk(b"IHDR", whole[16:28] + b"\1") + whole[33:]


def webp_chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def riff(chunks: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks


def canvas(width: int, height: int, flags: int = 0) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp_chunk(b"VP8X", bytes((flags, 0, 0, 0)) + sides)


ANIMATED, EXIF = 0x02, 0x08  # flags of a canvas
