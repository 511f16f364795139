"""Brightness, hues, keypoints and edges, on photographs and drawings that are worked by hand."""

import math

import cv2
import numpy as np
import pytest

from jetsel.features import NAMES, PAPER_NAMES, extract
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
        ((64, 64), (64, 64)),
        ((32, 128), (32, 128)),
        ((224, 224), (64, 64)),
        ((375, 500), (55, 74)),  # sqrt(4096 / 187500) = 0.1478: 55.4 x 73.9
        ((1, 20000), (1, 4096)),
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
    assert np.array_equal(extract(scene(8), PAPER_NAMES), extract(scene(1), PAPER_NAMES))


LENGTHS = tuple(name for name in NAMES if name.startswith("edge_length"))
ANGLES = tuple(name for name in NAMES if name.startswith("edge_angle"))


def only(index, value):
    return [value if i == index - 1 else 0 for i in range(7)]


def black_and_white(mask):
    return np.where(mask[..., None], np.uint8(255), np.uint8(0)).repeat(3, axis=2)


@pytest.mark.parametrize("dots", [[], [(10, 10)], [(10, 10), (30, 22), (50, 50)]])
def test_every_lonely_bright_pixel_is_one_keypoint(dots):
    image = np.zeros((64, 64, 3), np.uint8)
    for y, x in dots:
        image[y, x] = 255
    assert extract(image, ("n_keypoints",)).tolist() == [len(dots)]


@pytest.mark.parametrize(("step", "keypoints"), [(30, 0), (31, 1)])
def test_a_keypoint_stands_out_by_more_than_thirty_grey_levels(step, keypoints):
    image = np.full((21, 21, 3), 100, np.uint8)
    image[10, 10] += step
    assert extract(image, ("n_keypoints",)).tolist() == [keypoints]


@pytest.mark.parametrize(
    ("rows", "bin_number"), [(4, 1), (8, 1), (9, 2), (33, 4), (64, 4), (65, 5), (256, 6), (257, 7)]
)
def test_an_edge_from_top_to_bottom_is_as_long_as_the_image_is_high(rows, bin_number):
    mask = np.zeros((rows, 10), bool)
    mask[:, 5:] = True
    # One edge pixel in each row of ten.
    assert extract(black_and_white(mask), LENGTHS) == pytest.approx(only(bin_number, 0.1))


@pytest.mark.parametrize(("step", "found"), [(70, 0), (80, 1)])
def test_a_step_counts_as_an_edge_from_75_grey_levels(step, found):
    image = np.full((8, 10, 3), 50, np.uint8)
    image[:, 5:] += step  # Sobel answers 4 * step, and the strong threshold is 300
    assert extract(image, LENGTHS) == pytest.approx(only(1, 0.1 * found))


y, x = np.mgrid[:64, :64]


@pytest.mark.parametrize(
    ("inside", "bin_number"),
    [
        (y > 31, 1),  # horizontal
        (x + y > 63, 3),  # rising to the right, 45 degrees
        (x > 31, 4),  # vertical
        (x > y, 6),  # falling to the right, 135 degrees
    ],
)
def test_a_straight_edge_has_one_angle_from_either_side(inside, bin_number):
    for negative in (False, True):
        values = extract(black_and_white(inside != negative), ANGLES)
        assert values.sum() == pytest.approx(1)
        assert values[bin_number - 1] > 0.95  # a diagonal's ends, at the border, bend


SHAPE = ("area_by_perim", "aspect_ratio")


def rectangle(ground, level, top, left, height, width):
    image = np.full((64, 64, 3), ground, np.uint8)
    image[top : top + height, left : left + width] = level
    return image


@pytest.mark.parametrize(("ground", "level"), [(0, 255), (255, 0), (60, 180), (180, 60)])
def test_a_rectangle_is_found_on_dark_and_on_bright_ground(ground, level):
    # 40 x 16, halved: 20 x 8, area 160, perimeter 56.
    image = rectangle(ground, level, top=10, left=20, height=16, width=40)
    assert extract(image, SHAPE) == pytest.approx([160 / 56, 2.5])


def test_the_larger_of_two_is_the_main_one():
    image = rectangle(0, 255, 4, 4, 8, 8)
    image[24:44, 24:64] = 255  # 40 x 20, halved: 20 x 10, area 200, perimeter 60
    assert extract(image, SHAPE) == pytest.approx([200 / 60, 2])


def test_holes_do_not_make_an_object_smaller():
    image = rectangle(0, 255, 12, 12, 40, 40)
    image[24:40, 24:40] = 0  # halved: 20 x 20, area 400, perimeter 80
    assert extract(image, SHAPE) == pytest.approx([5, 1])


def test_at_a_tie_the_bright_half_is_the_object():
    # Halved: 16 x 32, area 512, perimeter 96.
    assert extract(rectangle(0, 255, 0, 32, 64, 32), SHAPE) == pytest.approx([512 / 96, 0.5])
    assert extract(rectangle(255, 0, 0, 32, 64, 32), SHAPE) == pytest.approx([512 / 96, 0.5])


@pytest.mark.parametrize("level", [0, 90, 255])
def test_a_flat_image_is_its_own_object(level):
    # 16 x 8, halved: 8 x 4, area 32, perimeter 24.
    assert extract(np.full((8, 16, 3), level, np.uint8), SHAPE) == pytest.approx([32 / 24, 2])
