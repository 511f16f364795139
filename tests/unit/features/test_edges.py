"""Keypoints, lengths of edges and their angles, on drawings whose edges can be counted."""

import numpy as np
import pytest

from jetsel.features import NAMES, extract

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
