"""What a box cuts out of a photograph."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.base.errors import BadRequestError
from jetsel.image import Photograph, crop, pixels_of_box

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
