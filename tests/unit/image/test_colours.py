"""Rare kinds of pixels come out as another decoder shows them: CMYK, YCCK, interlaced, 16 bits, palettes."""

from __future__ import annotations

import base64
import io

import cv2
import numpy as np
import pytest
from PIL import Image  # what scikit-image reads files with: a decoder that shares no code of ours

from jetsel.image import decode
from tests.unit.image.files import LIMITS, drawing, encoded, interlaced, jpeg_segment, png_chunk

WHOLE = 1_000_000
ADOBE = b"Adobe\0\x64\0\0\0\0"


def theirs(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"))[:, :, ::-1].astype(int)


def cmyk(transform: int) -> bytes:
    """A JPEG of four components, marked as CMYK (0) or YCCK (2) as Adobe's programs do."""
    file = io.BytesIO()
    Image.fromarray(cv2.GaussianBlur(drawing(48, 32), (0, 0), 2)[:, :, ::-1].copy()).convert("CMYK").save(
        file, "JPEG", quality=95
    )
    data = file.getvalue()
    marked = jpeg_segment(0xEE, ADOBE + b"\0")
    assert data.count(marked) == 1
    return data.replace(marked, jpeg_segment(0xEE, ADOBE + bytes((transform,))))


@pytest.mark.parametrize("transform", [0, 2], ids=["CMYK", "YCCK"])
def test_four_inks_become_the_colours_that_another_decoder_shows(transform):
    data = cmyk(transform)
    ours = decode(data, LIMITS, WHOLE).bgr.astype(int)
    assert np.abs(ours - theirs(data)).max() <= 2  # one rounds where the other cuts


def test_an_interlaced_png_is_read_as_a_plain_one():
    bgr = drawing(37, 23)
    np.testing.assert_array_equal(decode(interlaced(bgr), LIMITS, WHOLE).bgr, bgr)


def test_what_a_png_says_of_its_colours_changes_no_pixel():
    """They are left out of what is decoded, so that they must never have had an effect."""
    data = encoded(".png", drawing(40, 30))
    before = decode(data, LIMITS, WHOLE).bgr
    for name, content in (
        (b"gAMA", (10_000).to_bytes(4, "big")),
        (b"sRGB", b"\0"),
        (b"tRNS", bytes(6)),
    ):
        extended = data[:33] + png_chunk(name, content) + data[33:]
        np.testing.assert_array_equal(decode(extended, LIMITS, WHOLE).bgr, before)
        np.testing.assert_array_equal(cv2.imdecode(np.frombuffer(extended, np.uint8), cv2.IMREAD_COLOR), before)


ARITHMETIC = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19i"
    "Z2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2Nj"
    "Y2NjY2NjY2P/yQARCAARABgDASIAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwD9H0bQ2w7XqByxavoloheTRZE/V+9x"
    "vRaPvX3ptzn0Nn6mYOdrt1/eEcQ5gRK4oAz0RUj/2Q=="
)
"""`jpegtran -arithmetic` of a drawing at quality 50: arithmetic coding in place of Huffman's (T.81, annex D)."""


def test_an_arithmetically_coded_jpeg_is_the_very_same_picture():
    plain = encoded(".jpg", drawing(24, 17), cv2.IMWRITE_JPEG_QUALITY, 50)
    assert b"\xff\xc9" in ARITHMETIC
    assert np.abs(decode(ARITHMETIC, LIMITS, WHOLE).bgr.astype(int) - decode(plain, LIMITS, WHOLE).bgr).max() <= 12
