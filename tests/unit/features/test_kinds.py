"""What tells kinds of images apart: size, colour, true resolution and noise, on images made for it."""

import cv2
import numpy as np
import pytest

from jetsel.features import SIZE, extract

DRAW = np.random.default_rng(4)
GRASS = cv2.GaussianBlur(DRAW.integers(0, 256, (256, 256, 3), np.uint8), (0, 0), 1.5)


def kind(bgr, name, original_px=None):
    return float(extract(bgr, (name,), original_px=original_px)[0])


def test_sizes_are_those_of_the_image_before_it_was_decoded_at_a_reduced_scale():
    assert extract(np.zeros((64, 128, 3), np.uint8), SIZE).tolist() == [7, 6, 13]
    assert extract(np.zeros((64, 128, 3), np.uint8), SIZE, original_px=(1024, 512)).tolist() == [10, 9, 19]


def test_grey_has_no_colour_and_a_mix_of_red_and_blue_much():
    halves = np.zeros((64, 64, 3), np.uint8)
    halves[:, :32, 2] = halves[:, 32:, 0] = 255
    assert kind(np.full((64, 64, 3), 99, np.uint8), "colourfulness") == 0
    # Red less green is 255 and 0, yellow less blue 127.5 and -255: means 127.5 and -63.75, deviations 127.5 and 191.25.
    assert kind(halves, "colourfulness") == pytest.approx(np.hypot(127.5, 191.25) + 0.3 * np.hypot(127.5, 63.75))


def test_detail_is_that_of_the_image_and_not_of_its_number_of_pixels():
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    doubled = stripes.repeat(2, axis=0).repeat(2, axis=1)
    assert kind(stripes, "detail") == 1
    assert kind(doubled, "detail") == 0
    assert kind(np.full((64, 64, 3), 7, np.uint8), "detail") == 0
    enlarged = cv2.resize(GRASS, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)
    assert kind(enlarged, "detail") < 0.7 * kind(GRASS, "detail")


@pytest.mark.parametrize("deviation", [3, 10])
def test_noise_is_measured_in_grey_levels_and_hardly_moved_by_edges(deviation):
    scene = np.full((128, 128), 60.0)
    scene[40:90, 30:100] = 180
    noisy = scene + deviation * DRAW.standard_normal(scene.shape)
    bgr = np.repeat(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)
    assert kind(bgr, "noise") == pytest.approx(deviation, rel=0.25)
    assert kind(np.repeat(scene.astype(np.uint8)[:, :, None], 3, axis=2), "noise") < 1
