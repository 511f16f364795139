"""Brightness and hues, by hand-worked photographs."""

import math

import cv2
import numpy as np
import pytest

from jetsel.features import NAMES, extract
from jetsel.features.shrink import shrink, working_size

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


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1, 1), (1, 1)),
        ((64, 64), (64, 64)),
        ((32, 128), (32, 128)),
        ((224, 224), (64, 64)),
        ((375, 500), (55, 74)),  # sqrt(4096 / 187500) = 0.1478: 55.4 x 73.9
        ((1, 20000), (1, 4096)),
        ((20000, 1), (4096, 1)),
        ((2, 3000), (2, 2048)),
    ],
)
def test_working_sizes(size, expected):
    assert working_size(*size) == expected


def test_halving_averages_two_by_two():
    block = np.array([[[0, 10, 20], [40, 10, 20]], [[80, 30, 20], [120, 30, 22]]], np.uint8)
    small = shrink(np.tile(block, (64, 64, 1)))
    assert small.shape == (64, 64, 3)
    assert np.unique(small.reshape(-1, 3), axis=0).tolist() == [[60, 20, 21]]  # 20.5 is rounded up


def scene(scale):
    image = np.full((64 * scale, 64 * scale, 3), 60, np.uint8)
    image[12 * scale : 36 * scale, 16 * scale : 48 * scale] = (30, 40, 220)
    return image


def test_a_photograph_eight_times_as_wide_has_the_same_features():
    assert np.array_equal(extract(scene(8)), extract(scene(1)))
