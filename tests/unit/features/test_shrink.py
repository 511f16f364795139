"""The working resolution: sizes, and what is left of a photograph."""

import numpy as np
import pytest

from jetsel.features import extract
from jetsel.features.shrink import shrink, working_size


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
