"""A photograph's pixels from its header alone: what decoding then makes, and that nothing but our errors is raised."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.errors import BadImageError, ImageTooLargeError, JetselError
from jetsel.image import Limits, decode, measure
from jetsel.wire import Pixels
from tests.unit.image.animated import ANIMATED, frame
from tests.unit.image.files import LIMITS, canvas, drawing, encoded, jpeg_segment, riff, webp_chunk

KINDS = (".jpg", ".png", ".webp", ".bmp")
PROGRESSIVE = (cv2.IMWRITE_JPEG_PROGRESSIVE, 1)


def measured(data: bytes, needed_px: int = 10_000, limits: Limits = LIMITS) -> int:
    return measure(memoryview(data), None, limits, needed_px).pixels


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
    assert measure(memoryview(bytes(64 * 72)), pixels, LIMITS, 1).pixels == 64 * 48
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


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_measured_is_used_and_more_is_never_decoded(kind: str) -> None:
    data = encoded(kind, drawing(64, 48))
    seen = measure(memoryview(data), None, LIMITS, 48)
    assert np.array_equal(decode(data, LIMITS, 48, seen).bgr, decode(data, LIMITS, 48).bgr)
    with pytest.raises(BadImageError, match="says 3071 pixels and what follows 3072"):
        decode(data, LIMITS, 48, seen._replace(pixels=3071))


def hidden_canvases() -> dict[str, bytes]:
    """Animations whose first chunk says 2 x 2 pixels, and a later one 900 x 900."""
    still, picture = encoded(".webp", drawing(2, 2))[12:], frame(drawing(2, 2))
    large, small = canvas(900, 900, ANIMATED), canvas(2, 2, ANIMATED)
    return {
        "a picture first": riff(still + large + picture),
        "two canvases": riff(small + large + picture),
        "a canvas after the frame": riff(small + picture + large),
        "another chunk first": riff(webp_chunk(b"JUNK", bytes(10)) + large + picture),
    }


@pytest.mark.parametrize("data", hidden_canvases().values(), ids=hidden_canvases())
def test_a_webp_never_takes_more_than_its_first_chunk_says(data: bytes) -> None:
    with pytest.raises(BadImageError, match=r"first chunk|begins with a chunk"):
        decode(data, LIMITS, 10_000)


def test_filling_before_a_picture_is_passed_over_to_a_bounded_length() -> None:
    jpeg = encoded(".jpg", drawing(64, 48))
    between = b"\xff" * 8000 + jpeg_segment(0xE2, b"")
    assert measured(jpeg[:2] + between * 8 + jpeg[2:]) == 64 * 48
    assert decode(jpeg[:2] + between * 8 + jpeg[2:], LIMITS, 48).bgr.shape == (48, 64, 3)
    for data in (jpeg[:2] + between * 9 + jpeg[2:], jpeg[:2] + b"\xff" * 3_900_000 + jpeg[2:]):
        with pytest.raises(BadImageError, match="65536 bytes stand between"):
            measured(data)


def test_a_marker_is_found_wherever_the_steps_of_the_search_end() -> None:
    jpeg = encoded(".jpg", drawing(64, 48))
    for filling in range(2**18 - 3, 2**18 + 3):  # inside of the scan, whose end then is not the file's
        data = jpeg[:-2] + bytes(filling) + b"\xff\xd9 "
        assert decode(data, LIMITS, 48).bgr.shape == (48, 64, 3)
        with pytest.raises(BadImageError, match="truncated"):
            decode(data[:-2], LIMITS, 48)


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
