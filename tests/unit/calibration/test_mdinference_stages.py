"""MDInference's three stages, by hand and by properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.papers.mdinference.stages import Models, base, chances, explored, mdinference, pick, utilities

FAST, MIDDLE, TWIN, SLOW = range(4)
MODELS = Models(np.array([0.4, 0.7, 0.6, 0.8]), np.array([5.0, 20.0, 22.0, 100.0]), np.array([1.0, 4.0, 1.0, 10.0]))


@pytest.mark.parametrize(
    ("budget_ms", "expected"),
    [(200.0, SLOW), (110.0, MIDDLE), (24.1, MIDDLE), (24.0, TWIN), (7.0, FAST), (3.0, FAST), (-50.0, FAST)],
)
def test_the_base_is_the_most_accurate_that_fits_or_the_fastest(budget_ms: float, expected: int) -> None:
    assert base(np.array([budget_ms]), MODELS).tolist() == [expected]


def test_of_equally_accurate_ones_the_faster_is_the_base() -> None:
    models = Models(np.array([0.5, 0.5]), np.array([9.0, 3.0]), np.ones(2))
    assert base(np.array([100.0]), models).tolist() == [1]


def test_the_exploration_set_lies_within_one_deviation_of_the_base() -> None:
    assert explored(np.array([MIDDLE, TWIN, SLOW]), MODELS).tolist() == [
        [False, True, True, False],
        [False, False, True, False],
        [False, False, False, True],
    ]


def test_utility_is_accuracy_by_what_is_left_and_never_negative() -> None:
    found = utilities(np.array([40.0, 20.0]), MODELS)
    assert found[0] == pytest.approx([0.4 * 34 / 35, 0.7 * 16 / 20, 0.6 * 17 / 18, 0.0])
    assert found[1] == pytest.approx([0.4 * 14 / 15, 0.0, 0.0, 0.0])


def test_the_explored_are_picked_by_their_share_of_the_utility() -> None:
    (found,) = chances(np.array([40.0]), MODELS)
    middle, twin = 0.7 * 16 / 20, 0.6 * 17 / 18
    assert found == pytest.approx([0, middle / (middle + twin), twin / (middle + twin), 0])
    assert pick(np.array([[0.0, 0.5, 0.5, 0.0]] * 3), np.array([0.0, 0.49, 0.5])).tolist() == [MIDDLE, MIDDLE, TWIN]


def test_where_nothing_fits_the_fastest_is_taken() -> None:
    assert chances(np.array([1.0]), MODELS).tolist() == [[1, 0, 0, 0]]


positive = st.floats(0.01, 1000)


@given(
    st.lists(st.tuples(st.floats(0.01, 0.99), positive, st.floats(0, 100)), min_size=1, max_size=8),
    st.floats(-100, 3000),
    st.floats(0, 1, exclude_max=True),
)
def test_what_is_picked_is_explored_and_useful_where_anything_is(
    known: list[tuple[float, float, float]], budget_ms: float, draw: float
) -> None:
    models = Models(*np.array(known).T)
    budgets, draws = np.array([budget_ms]), np.array([draw])
    (picked,) = mdinference(budgets, models, draws)
    bases = base(budgets, models)
    assert explored(bases, models)[0, picked]
    assert utilities(budgets, models)[0, picked] > 0 or picked == bases[0]
    assert chances(budgets, models).sum() == pytest.approx(1)
