"""What a box cuts out of a photograph."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.base.errors import BadRequestError
from jetsel.image import Photograph, crop

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


def test_a_box_in_pixels_said_to_be_in_shares_is_outside() -> None:
    with pytest.raises(BadRequestError, match="in shares has no pixel"):
        crop(PHOTOGRAPH, (10, 5, 20, 20), "shares")
