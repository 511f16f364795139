"""Raw frames in every layout, padded and not, and stated wrongly; and what a box cuts out of a photograph."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.base.errors import BadImageError, BadRequestError, ImageTooLargeError
from jetsel.image import Limits, Photograph, crop, from_pixels, pixels_of_box
from jetsel.wire import Pixels
from tests.unit.image.files import LIMITS


def padded(rows: np.ndarray, stride: int) -> bytes:
    """The rows with 0xEE between them, which must never show in a photograph."""
    framed = np.full((len(rows), stride), 0xEE, np.uint8)
    framed[:, : rows.shape[1]] = rows
    return framed.tobytes()


sizes = st.tuples(st.integers(1, 33), st.integers(1, 33), st.integers(0, 40), st.integers(0, 2**32))


@given(sizes)
def test_bgr8_rgb8_and_gray8_round_trip_at_every_stride(size):
    width, height, padding, seed = size
    bgr = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    cases = {"bgr8": (bgr, bgr), "rgb8": (bgr[:, :, ::-1], bgr), "gray8": (bgr[:, :, 0], np.dstack([bgr[:, :, 0]] * 3))}
    for name, (sent, expected) in cases.items():
        rows = sent.reshape(height, -1)
        stride = rows.shape[1] + padding
        photograph = from_pixels(padded(rows, stride), Pixels(name, width, height, stride), LIMITS)
        np.testing.assert_array_equal(photograph.bgr, expected)
        assert photograph.bgr.flags.c_contiguous
        assert (photograph.width_px, photograph.height_px) == (width, height)


@given(sizes)
def test_nv12_is_bt601_in_video_range_at_every_stride(size):
    width, height, padding, seed = size[0] * 2, size[1] * 2, size[2], size[3]
    levels = np.random.default_rng(seed).integers(0, 256, (height * 3 // 2, width), dtype=np.uint8)
    data = padded(levels, width + padding)
    bgr = from_pixels(data, Pixels("nv12", width, height, width + padding), LIMITS).bgr
    y = 1.164 * np.maximum(levels[:height].astype(float) - 16, 0)
    u, v = (levels[height:, i::2].astype(float).repeat(2, axis=0).repeat(2, axis=1) - 128 for i in range(2))
    expected = np.dstack([y + 2.018 * u, y - 0.813 * v - 0.391 * u, y + 1.596 * v]).clip(0, 255)
    assert bgr.shape == (height, width, 3)
    assert bgr.flags.c_contiguous
    assert np.abs(bgr - expected).max() <= 1.5


def test_bgr8_without_padding_is_a_read_only_view_and_everything_else_a_copy():
    data = bytearray(range(24))
    view = from_pixels(memoryview(data), Pixels("bgr8", 4, 2, 12), LIMITS).bgr
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0, 0] = 9
    data[0] = 200
    assert view[0, 0, 0] == 200
    for pixels in (Pixels("rgb8", 4, 2, 12), Pixels("bgr8", 3, 2, 12), Pixels("gray8", 12, 2, 12)):
        copy = from_pixels(memoryview(data), pixels, LIMITS).bgr
        before = copy.copy()
        data[1] += 1
        np.testing.assert_array_equal(copy, before)


def test_what_is_wrong_is_named():
    for pixels, n_bytes, message in (
        (Pixels("bgr8", 0, 2, 12), 24, "width is 0"),
        (Pixels("bgr8", 4, 2, -12), 24, "stride is -12"),
        (Pixels("bgr8", 4, 2, 11), 22, "4 pixels of bgr8 take 12 bytes"),
        (Pixels("rgb8", 4, 2, 12), 23, "2 rows of stride 12 are 24"),
        (Pixels("nv12", 4, 2, 4), 8, "3 rows of stride 4 are 12"),
        (Pixels("nv12", 3, 2, 4), 12, "width is 3; nv12"),
        (Pixels("nv12", 4, 3, 4), 16, "height is 3; nv12"),
        (Pixels("gray8", 1, 1, 1), 0, "empty"),
    ):
        with pytest.raises(BadImageError, match=message):
            from_pixels(bytes(n_bytes), pixels, LIMITS)


def test_the_limits_hold_for_raw_pixels_too():
    pixels = Pixels("gray8", 10, 10, 10)
    assert from_pixels(bytes(100), pixels, Limits(100, 100)).bgr.shape == (10, 10, 3)
    for limits in (Limits(99, 100), Limits(100, 99)):
        with pytest.raises(ImageTooLargeError):
            from_pixels(bytes(100), pixels, limits)


BGR = np.random.default_rng(0).integers(0, 256, (31, 47, 3), dtype=np.uint8)
PHOTOGRAPH = Photograph(BGR, 47, 31)
numbers = st.one_of(st.none(), st.floats(), st.integers(-60, 120))


@given(x=st.integers(0, 46), y=st.integers(0, 30), width=st.integers(1, 60), height=st.integers(1, 60))
def test_the_pixels_of_a_box_are_copied_as_they_are_in_either_unit(x: int, y: int, width: int, height: int) -> None:
    wanted = BGR[y : y + height, x : x + width]
    for box, unit in (((x, y, width, height), "pixels"), ((x / 47, y / 31, width / 47, height / 31), "shares")):
        found = crop(PHOTOGRAPH, box, unit)
        np.testing.assert_array_equal(found.bgr, wanted)
        assert found.bgr.flags.c_contiguous
        assert (found.width_px, found.height_px) == (wanted.shape[1], wanted.shape[0])


@given(box=st.lists(numbers, max_size=6), unit=st.sampled_from(["pixels", "shares"]))
def test_whatever_is_sent_gives_pixels_or_a_reason(box: list[float | None], unit: str) -> None:
    with contextlib.suppress(BadRequestError):
        found = crop(PHOTOGRAPH, box, unit)
        assert found.bgr.size == found.width_px * found.height_px * 3 > 0


@pytest.mark.parametrize(
    ("start", "length", "pixels"),
    [
        (0.5, 1, (1, 2)),  # halves are rounded up at both ends, so a box of one pixel has one
        (1.5, 1, (2, 3)),
        (10.5, 0.4, (10, 11)),  # the pixel that it lies in
        (46.6, 0.4, (46, 47)),
        (46.4, 5, (46, 47)),
        (-5.5, 7, (0, 2)),
        (-1e308, 1.5e308, (0, 47)),
        (0, 1e308, (0, 47)),
    ],
)
def test_edges_are_rounded_and_a_box_with_area_has_a_pixel(
    start: float, length: float, pixels: tuple[int, int]
) -> None:
    assert pixels_of_box((start, 0, length, 31), "pixels", 47, 31) == (pixels[0], 0, pixels[1], 31)


def test_shares_of_any_size_are_cut_at_the_image() -> None:
    assert pixels_of_box((-1e308, 0, 1.5e308, 1), "shares", 47, 31) == (0, 0, 47, 31)
    assert pixels_of_box((0, 0.5, 1e308, 1), "shares", 47, 31) == (0, 16, 47, 31)
    for box in ((-1e308, 0, 1, 1), (1e308, 0, 1e308, 1), (0.5, 0.5, 0, 0.1), (0.5, 0.5, -0.1, 0.1)):
        with pytest.raises(BadRequestError, match="has no pixel"):
            pixels_of_box(box, "shares", 47, 31)
