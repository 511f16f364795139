"""Algorithm 1 of Taylor et al. on tables small enough to follow with a pencil."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.papers.taylor.algorithm1 import Step, optimum_votes, select_models

MODELS = ("s", "m", "l", "x")
COSTS_MS = (1.0, 2.0, 4.0, 8.0)

# Ten photographs, cheapest model first.
TEN = np.array(
    [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1, 1, 0, 1],
        [0, 1, 1, 1],  # from here on the first fails
        [0, 1, 0, 1],
        [0, 0, 1, 1],
        [0, 0, 1, 1],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
    ],
    bool,
)


def test_every_step_by_hand() -> None:
    chosen, steps = select_models(TEN, COSTS_MS, MODELS, theta_points=10.0)
    # Optimal: s of the first four, m of the next two, l of the three after them, nobody of the last.
    # s fails on six: m is right on 2 of them, l and x on 4; l is cheaper. s and l then have 8 of 10.
    # They fail on two, 6th and last: m and x have one each. m is cheaper, and its gain of 10 points is no more than 10.
    assert chosen == ("s", "l")
    assert steps == [
        Step("s", {"s": 0.4, "m": 0.2, "l": 0.3, "x": 0.0}, 10, 40.0, 0.4, kept=True),
        Step("l", {"m": 2 / 6, "l": 4 / 6, "x": 4 / 6}, 6, 40.0, 0.8, kept=True),
        Step("m", {"m": 0.5, "x": 0.5}, 2, 10.0, 0.9, kept=False),
    ]


def test_a_gain_over_theta_goes_on_until_nothing_is_gained() -> None:
    chosen, steps = select_models(TEN, COSTS_MS, MODELS, theta_points=9.9)
    assert chosen == ("s", "l", "m")
    last = steps[-1]
    assert (last.added, last.accuracy, last.failing, last.gain_points, last.kept) == ("x", {"x": 0.0}, 1, 0.0, False)


def test_of_equally_often_optimal_models_the_cheaper_is_the_first() -> None:
    right = np.array([[0, 1], [1, 0]], bool)
    chosen, _ = select_models(right, [5.0, 3.0], ["dear", "cheap"], 0.5)
    assert chosen == ("cheap", "dear")


def test_where_nothing_fails_any_more_it_ends_without_a_step_that_is_not_kept() -> None:
    right = np.array([[1, 0, 1], [0, 1, 1], [1, 0, 1]], bool)
    chosen, steps = select_models(right, [1.0, 2.0, 3.0], ["a", "b", "c"], 0.5)
    # a has two; of the third b and c are both right, and b is cheaper; c is never asked.
    assert chosen == ("a", "b")
    assert [step.kept for step in steps] == [True, True]
    assert steps[-1].total == 1.0


@pytest.mark.parametrize("before", [1, 150])
def test_a_gain_of_exactly_theta_stops_whatever_the_shares_round_to(before: int) -> None:
    # One photograph of 200 is 0.5 points: as floats, (151 / 200 - 150 / 200) x 100 is more.
    right = np.zeros((200, 2), bool)
    right[:before, 0] = right[before, 1] = True
    chosen, steps = select_models(right, [1.0, 2.0], ["a", "b"], 0.5)
    assert chosen == ("a",)
    assert steps[-1].gain_points == 0.5
    assert select_models(right, [1.0, 2.0], ["a", "b"], 0.49)[0] == ("a", "b")


@pytest.mark.parametrize(
    ("costs", "optimum"),
    [
        ([1, 2, 3], [0, 1, 2, 0]),
        ([9, 5, 7], [1, 1, 2, 2]),  # by the costs, not by the columns
        ([4, 4, 4], [0, 1, 2, 0]),  # of equals the first
    ],
)
def test_the_optimum_is_the_cheapest_that_is_right(costs: list[int], optimum: list[int]) -> None:
    right = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 0, 0]], bool)
    votes = optimum_votes(right, costs)
    assert votes[:4].argmax(axis=1).tolist() == optimum
    assert votes.sum(axis=1).tolist() == [1, 1, 1, 1, 0], "nobody is right: no vote"
