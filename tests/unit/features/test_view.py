"""Brightness and hues, by hand-worked photographs."""

import math

import cv2
import numpy as np
import pytest

from jetsel.features import NAMES, extract

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


HUES = tuple(name for name in NAMES if name.startswith("hue"))


def pixel_of(hue_degrees, saturation=255, value=255):
    return cv2.cvtColor(np.array([[[hue_degrees // 2, saturation, value]]], np.uint8), cv2.COLOR_HSV2BGR)


@pytest.mark.parametrize(
    ("bgr", "bin_number"),
    [
        ((0, 0, 255), 1),  # red
        ((0, 255, 255), 2),  # yellow
        ((0, 255, 0), 3),  # green
        ((255, 255, 0), 4),  # cyan
        ((255, 128, 0), 5),  # azure
        ((255, 0, 0), 6),  # blue
        ((255, 0, 255), 7),  # magenta
    ],
)
def test_a_pure_colour_fills_one_bin(bgr, bin_number):
    values = extract(np.full((5, 7, 3), bgr, np.uint8), HUES)
    assert values.tolist() == [float(i == bin_number - 1) for i in range(7)]


def test_reds_on_either_side_of_zero_are_in_one_bin():
    image = np.concatenate([pixel_of(350), pixel_of(10)], axis=1)
    assert extract(image, HUES).tolist() == [1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("bgr", "share"), [((0, 0, 39), 0), ((0, 0, 40), 1), ((217, 217, 255), 0), ((214, 214, 255), 1)]
)
def test_too_dark_or_too_pale_has_no_hue(bgr, share):
    # Value is 39 and 40 in the first two; saturation is 255 * 38 / 255 = 38 and 41 in the others.
    assert extract(np.full((3, 3, 3), bgr, np.uint8), ("hue1",)).tolist() == [share]


def test_shares_are_of_all_pixels():
    image = np.full((4, 4, 3), 128, np.uint8)
    image[0] = (0, 0, 255)
    image[1, :2] = (0, 255, 0)
    assert extract(image, HUES).tolist() == [4 / 16, 0, 2 / 16, 0, 0, 0, 0]
