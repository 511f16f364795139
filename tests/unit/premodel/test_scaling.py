"""Min-max scaling by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.premodel import Scaling, fit_scaling


def test_the_training_range_becomes_zero_to_one_and_a_constant_feature_zero() -> None:
    scaling = fit_scaling(np.array([[10, 5, -2], [30, 5, 2], [20, 5, -1]], np.float32))
    assert scaling.minimum.tolist() == [10, 5, -2]
    assert scaling.maximum.tolist() == [30, 5, 2]
    scaled = scaling.apply(np.array([[10, 5, -2], [30, 5, 2], [20, 5, -1]], np.float32))
    assert scaled.dtype == np.float32
    assert scaled.tolist() == [[0, 0, 0], [1, 0, 1], [0.5, 0, 0.25]]
    unseen = scaling.apply(np.array([[50, 99, 0], [0, -99, 0]], np.float32))
    assert unseen.tolist() == [[2, 0, 0.5], [-0.5, 0, 0.5]], "not clipped"


def test_the_widest_range_of_float32_does_not_overflow() -> None:
    huge = np.float32(3e38)
    scaling = fit_scaling(np.array([[-huge], [huge]], np.float32))
    assert scaling.apply(np.array([[-huge], [0], [huge]], np.float32)).ravel().tolist() == [0, 0.5, 1]


@pytest.mark.parametrize(
    ("minimum", "maximum"),
    [([0, 0], [1]), ([[0]], [[1]]), ([2], [1]), ([0], [np.inf]), ([np.nan], [1])],
)
def test_a_range_that_is_none_is_refused(minimum: list[float], maximum: list[float]) -> None:
    with pytest.raises(ValueError, match="minimum"):
        Scaling(np.array(minimum, np.float32), np.array(maximum, np.float32))
