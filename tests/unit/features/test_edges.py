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
