"""The main object of drawings: its area by perimeter and its proportions."""

import numpy as np
import pytest

from jetsel.features import extract
from jetsel.features.main_object import find_main_object

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


def test_a_single_pixel_has_an_area_and_a_perimeter():
    assert extract(np.full((1, 1, 3), 7, np.uint8), SHAPE) == pytest.approx([1 / 4, 1])
    assert find_main_object(np.zeros((1, 1), np.uint8)) == (1, 4, 1, 1)
