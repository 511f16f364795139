"""Whatever bytes come, decoding gives a photograph that agrees with its header, or one of two errors, no other."""

from __future__ import annotations

import cv2
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jetsel.errors import BadImageError, ImageTooLargeError
from jetsel.image import decode
from tests.unit.image.files import (
    LIMITS,
    canvas,
    drawing,
    encoded,
    flat_jpeg,
    noise,
    png,
    png_chunk,
    riff,
    tiff,
    with_app1,
)

SEEDS = [
    encoded(".jpg", noise(24, 17)),
    encoded(".jpg", drawing(64, 40), cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
    encoded(".jpg", drawing(64, 40)[:, :, 0], cv2.IMWRITE_JPEG_RST_INTERVAL, 1),
    with_app1(flat_jpeg(4), b"Exif\0\0" + tiff(6)),
    encoded(".png", noise(24, 17)),
    png(8, 1, 1, 3, b"\0\xf0", before=png_chunk(b"PLTE", bytes(6)) + png_chunk(b"eXIf", tiff(8, "<"))),
    encoded(".webp", noise(24, 17)),
    encoded(".webp", drawing(64, 40), cv2.IMWRITE_WEBP_QUALITY, 80),
    riff(canvas(24, 17) + encoded(".webp", noise(24, 17))[12:]),
    encoded(".bmp", noise(24, 17)),
    encoded(".bmp", drawing(24, 17)[:, :, 0]),
]
MAGIC = [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\x40\0\0\0WEBPVP8 ", b"RIFF\x40\0\0\0WEBPVP8L", b"BM"]


def check(data: bytes, needed_px: int) -> None:
    try:
        photograph = decode(data, LIMITS, needed_px)
    except (BadImageError, ImageTooLargeError):
        return
    height, width = photograph.bgr.shape[:2]
    assert photograph.bgr.dtype == np.uint8
    assert photograph.bgr.flags.c_contiguous
    assert 1 <= photograph.width_px * photograph.height_px <= LIMITS.max_pixels
    assert (width, height) in [(-(-photograph.width_px // n), -(-photograph.height_px // n)) for n in (1, 2, 4, 8)]


mutations = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=4), st.integers(0, 4)), max_size=5)


def mutated(data: bytes, changes: list[tuple[float, bytes, int]]) -> bytes:
    for place, new, dropped in changes:
        at = int(place * len(data))
        data = data[:at] + new + data[at + dropped :]
    return data


def with_checksums(data: bytes) -> bytes:
    """A mutated PNG with its checksums put right again, so that the mutation reaches the decoder."""
    at, whole = 8, data[:8]
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if at + 12 + length > len(data):
            break
        whole += png_chunk(data[at + 4 : at + 8], data[at + 8 : at + 8 + length])
        at += 12 + length
    return whole


@given(st.sampled_from([b"", *MAGIC]), st.binary(max_size=400), st.sampled_from([8, 64]))
def test_random_bytes(start, rest, needed_px):
    check(start + rest, needed_px)


@given(st.sampled_from(SEEDS), mutations, st.sampled_from([8, 64]))
def test_mutated_files(data, changes, needed_px):
    check(mutated(data, changes), needed_px)


@given(st.sampled_from([data for data in SEEDS if data.startswith(b"\x89PNG")]), mutations)
def test_mutated_png_with_right_checksums(data, changes):
    check(with_checksums(mutated(data, changes)), 64)
