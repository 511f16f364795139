"""The area under the curve, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.papers.area import area_under_curve


@pytest.mark.parametrize(
    ("right", "said", "area"),
    [
        ([True, True, False, False], [0.9, 0.6, 0.7, 0.1], 0.75),  # of four pairs one stands the wrong way round
        ([True, False, False], [0.5, 0.5, 0.1], 0.75),  # a tie counts half
        ([True, False], [0.5, 0.5], 0.5),
    ],
)
def test_the_area_under_the_curve_counts_pairs(right: list[bool], said: list[float], area: float) -> None:
    assert area_under_curve(np.array(right), np.array(said)) == pytest.approx(area)


def test_of_photographs_that_are_all_right_no_area_is_told() -> None:
    assert area_under_curve(np.ones(3, bool), np.arange(3.0)) is None
