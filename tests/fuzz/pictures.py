"""Small drawn pictures in every format that is read, as the fuzzer's first files: no photograph is needed for one."""

from __future__ import annotations

from collections.abc import Iterator

import cv2

from tests.unit.image.files import (
    ANIMATED,
    animation,
    bmp,
    canvas,
    drawing,
    encoded,
    flat_jpeg,
    frame,
    noise,
    png,
    png_chunk,
    riff,
    tiff,
    webp_chunk,
    with_app1,
)


def files() -> Iterator[bytes]:
    """Yield whole files, each of another kind."""
    bgr, small = drawing(24, 17), noise(8, 6)
    yield encoded(".jpg", bgr)
    yield encoded(".jpg", bgr, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    yield encoded(".jpg", bgr[:, :, 0], cv2.IMWRITE_JPEG_RST_INTERVAL, 1)
    yield with_app1(flat_jpeg(4), b"Exif\0\0" + tiff(6))
    yield encoded(".png", small)
    yield png(8, 1, 1, 3, b"\0\xf0", before=png_chunk(b"PLTE", bytes(6)) + png_chunk(b"eXIf", tiff(8, "<")))
    yield png(2, 1, 16, 6, b"\0" + bytes(16))
    yield encoded(".webp", small)
    yield encoded(".webp", bgr, cv2.IMWRITE_WEBP_QUALITY, 80)
    yield riff(canvas(8, 6, flags=8) + encoded(".webp", small)[12:] + webp_chunk(b"EXIF", tiff(3)))
    yield animation(8, 6, frame(small), frame(255 - small))
    yield animation(24, 17, frame(small, left=8, top=2), flags=10, after=webp_chunk(b"EXIF", tiff(6)))
    large = canvas(90, 90, ANIMATED)  # behind a first chunk that says less
    yield riff(canvas(8, 6, ANIMATED) + large + frame(small))
    yield riff(encoded(".webp", small)[12:] + large + frame(small))
    rows = b"".join(b"\0" + row.tobytes() for row in small)
    yield png(8, 6, 8, 2, rows, before=png_chunk(b"acTL", bytes(8)) + png_chunk(b"tEXt", b"a\0b"))
    yield encoded(".bmp", small)
    yield bmp(1, -2, 24, b"\1\2\3\0\4\5\6\0")
    yield bmp(2, 1, 8, b"\1\0\0\0", palette=bytes((1, 2, 3, 0, 4, 5, 6, 0)))
