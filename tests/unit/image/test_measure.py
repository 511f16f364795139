"""A photograph's pixels from its header alone: what decoding then makes, and that nothing but our errors is raised."""

from __future__ import annotations

import cv2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.errors import BadImageError, ImageTooLargeError, JetselError
from jetsel.image import Limits, decode, measure
from jetsel.wire import Pixels
from tests.unit.image.files import LIMITS, drawing, encoded, jpeg_segment

KINDS = (".jpg", ".png", ".webp", ".bmp")
PROGRESSIVE = (cv2.IMWRITE_JPEG_PROGRESSIVE, 1)


def measured(data: bytes, needed_px: int = 10_000, limits: Limits = LIMITS) -> int:
    return measure(memoryview(data), None, limits, needed_px)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "height"), [(1, 1), (37, 21), (640, 480)])
def test_it_is_what_decoding_makes(kind: str, width: int, height: int) -> None:
    data = encoded(kind, drawing(width, height))
    bgr = decode(data, LIMITS, 10_000).bgr
    assert measured(data) == bgr.shape[0] * bgr.shape[1] == width * height


@pytest.mark.parametrize("needed_px", [1, 50, 60, 100, 120, 240, 241, 481])
def test_a_jpeg_that_is_decoded_small_counts_small(needed_px: int) -> None:
    data = encoded(".jpg", drawing(643, 481))
    bgr = decode(data, LIMITS, needed_px).bgr
    assert measured(data, needed_px) == bgr.shape[0] * bgr.shape[1]


def test_a_jpeg_whose_coefficients_are_held_whole_counts_whole() -> None:
    data = encoded(".jpg", drawing(640, 480), *PROGRESSIVE)
    assert measured(data, 60) == 640 * 480


def test_a_header_alone_is_enough_and_what_follows_is_left_to_the_decoder() -> None:
    for kind in KINDS:
        whole = encoded(kind, drawing(640, 480))
        cut = whole[: len(whole) // 2]
        assert measured(cut) == 640 * 480
        with pytest.raises(BadImageError):
            decode(cut, LIMITS, 10_000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_header_that_is_cut_is_refused(kind: str) -> None:
    data = encoded(kind, drawing(64, 48))
    for length in range(15):
        with pytest.raises(BadImageError):
            measured(data[:length])


def test_bombs_are_refused_by_their_header() -> None:
    jpeg = encoded(".jpg", drawing(64, 48))
    at = jpeg.index(b"\xff\xc0") + 5
    bomb = jpeg[:at] + b"\xff\xff\xff\xff" + jpeg[at + 4 :]
    png = encoded(".png", drawing(64, 48))
    for data in (bomb, png[:16] + b"\0\1\x86\xa0" * 2 + png[24:]):  # 65,535 and 100,000 pixels a side
        with pytest.raises(ImageTooLargeError, match="max_image_megapixels"):
            measured(data)
    with pytest.raises(ImageTooLargeError, match="max_image_mb"):
        measured(png, limits=Limits(len(png) - 1, 10**6))


def test_raw_pixels_say_their_own_and_are_checked_whole() -> None:
    pixels = Pixels("nv12", 64, 48, 64)
    assert measure(memoryview(bytes(64 * 72)), pixels, LIMITS, 1) == 64 * 48
    with pytest.raises(BadImageError, match="have 4607 bytes"):
        measure(memoryview(bytes(64 * 72 - 1)), pixels, LIMITS, 1)
    with pytest.raises(ImageTooLargeError):
        measure(memoryview(bytes(9)), Pixels("bgr8", 2**20, 2**20, 2**22), LIMITS, 1)


def test_many_segments_before_the_picture_cost_a_bounded_walk() -> None:
    jpeg = encoded(".jpg", drawing(64, 48))
    for count, is_read in ((200, True), (2000, False)):
        data = jpeg[:2] + jpeg_segment(0xE2, b"") * count + jpeg[2:]
        if is_read:
            assert measured(data) == 64 * 48
        else:
            with pytest.raises(BadImageError, match="1024 segments"):
                measured(data)


SAID = ("within", "bad-image", "image-too-large")


def said(data: bytes, needed_px: int) -> str:
    try:
        return "within" if 0 < measured(data, needed_px) <= LIMITS.max_pixels else "outside"
    except JetselError as error:
        return error.code


STARTS = (b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\0\1\0\0WEBP", b"RIFF\0\1\0\0WEBPVP8X", b"BM")


@given(st.sampled_from(STARTS), st.binary(max_size=200))
def test_whatever_the_bytes_nothing_but_our_errors_is_raised(start: bytes, rest: bytes) -> None:
    assert said(start + rest, 10_000) in SAID


@given(st.sampled_from(KINDS), st.integers(0, 200), st.integers(0, 255))
def test_whatever_byte_of_a_header_is_wrong_nothing_but_our_errors_is_raised(kind: str, at: int, value: int) -> None:
    data = bytearray(encoded(kind, drawing(32, 24)))
    data[min(at, len(data) - 1)] = value
    assert said(bytes(data), 8) in SAID
