"""Of an animation one picture is read: the first frame of a WebP, on its canvas, and the default image of a PNG."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from jetsel.image import decode
from tests.unit.image.files import (
    LIMITS,
    animation,
    frame,
    noise,
)

WHOLE = 1_000_000


def test_the_first_frame_of_a_webp_is_the_photograph():
    first, second = noise(40, 30), 255 - noise(40, 30)
    photograph = decode(animation(40, 30, frame(first), frame(second)), LIMITS, WHOLE)
    np.testing.assert_array_equal(photograph.bgr, first)
    assert (photograph.width_px, photograph.height_px) == (40, 30)


def test_a_frame_lies_where_it_says_and_the_canvas_around_it_is_black():
    photograph = decode(animation(40, 30, frame(noise(16, 9), left=8, top=20)), LIMITS, WHOLE)
    expected = np.zeros((30, 40, 3), np.uint8)
    expected[20:29, 8:24] = noise(16, 9)
    np.testing.assert_array_equal(photograph.bgr, expected)


def test_alpha_of_a_frame_is_dropped_as_that_of_a_still_picture():
    bgra = np.dstack([noise(16, 16), np.full((16, 16), 128, np.uint8)])
    np.testing.assert_array_equal(decode(animation(16, 16, frame(bgra)), LIMITS, WHOLE).bgr, bgra[:, :, :3])


@pytest.mark.parametrize("is_first_frame", [True, False])
def test_the_default_image_of_an_animated_png_is_the_photograph(is_first_frame):
    frames = [Image.fromarray(noise(40, 30)[:, :, ::-1]), Image.fromarray(255 - noise(40, 30))]
    file = io.BytesIO()
    options = {"save_all": True, "default_image": not is_first_frame, "duration": 100}
    frames[0].save(file, "PNG", append_images=[frames[1], frames[0]], **options)
    assert b"acTL" in file.getvalue()
    np.testing.assert_array_equal(decode(file.getvalue(), LIMITS, WHOLE).bgr, noise(40, 30))
