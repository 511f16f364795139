"""Brightness and contrast, on images whose means and deviations can be worked out by hand."""

import math

import numpy as np
import pytest

from jetsel.features import extract

LIGHT = ("avg_brightness", "brightness_rms", "avg_perceived_brightness", "perceived_brightness_rms", "contrast")


def test_half_black_half_white():
    image = np.zeros((64, 64, 3), np.uint8)
    image[:, 32:] = 255
    rms = 255 / math.sqrt(2)
    assert extract(image, LIGHT) == pytest.approx([127.5, rms, 127.5, rms, 127.5], rel=1e-5)


@pytest.mark.parametrize(
    ("bgr", "gray", "perceived"),
    [
        ((255, 0, 0), 29, 255 * math.sqrt(0.114)),
        ((0, 255, 0), 150, 255 * math.sqrt(0.587)),
        ((0, 0, 255), 76, 255 * math.sqrt(0.299)),
        ((0, 0, 0), 0, 0),
        ((255, 255, 255), 255, 255),
    ],
)
def test_a_pure_colour_is_brighter_to_the_eye_than_its_grey_level(bgr, gray, perceived):
    image = np.full((4, 4, 3), bgr, np.uint8)
    values = extract(image, ("avg_brightness", "avg_perceived_brightness"))
    assert values == pytest.approx([gray, perceived], rel=1e-5)


def test_perceived_brightness_is_averaged_over_pixels_not_taken_of_the_average_colour():
    image = np.zeros((2, 4, 3), np.uint8)
    image[0] = (0, 0, 255)
    red = 255 * math.sqrt(0.299)
    values = extract(image, ("avg_perceived_brightness", "perceived_brightness_rms"))
    assert values == pytest.approx([red / 2, red / math.sqrt(2)], rel=1e-5)
