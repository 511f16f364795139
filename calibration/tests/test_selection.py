"""Features and neighbours by lift: hand-made choices, and images whose difficulty is known by construction."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.papers.taylor.selection import Judgement, Known, judge, lift_of, select, time_price

IMAGES = 600


def free(_names: tuple[str, ...]) -> float:
    return 0.0


def known(features: NDArray[np.float64], names: str, small_is_right: NDArray[np.bool_]) -> Known:
    """A small model that is right on some images and a large one that is right on all; 10 folds."""
    right = np.column_stack([small_is_right, np.ones(len(features), bool)])
    votes = np.column_stack([small_is_right, ~small_is_right])
    return Known(features.astype(np.float32), tuple(names.split()), votes, right, np.arange(len(features)) % 10, 1)


def test_lift_is_accuracy_beyond_the_same_shares_at_random() -> None:
    right = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], bool)
    # Each model is right on half of the images, so half of each at random gives 2 of 4. This choice gives 3.
    assert lift_of(np.array([0, 1, 1, 0]), right).mean() == pytest.approx(0.25)
    assert lift_of(np.array([1, 1, 1, 1]), right).mean() == 0  # one model alone is its own shares


def test_a_chain_that_is_always_in_doubt_has_no_lift_although_it_is_always_right() -> None:
    draw = np.random.default_rng(3)
    images = known(draw.random((IMAGES, 2)), "noise hum", draw.random(IMAGES) < 0.3)
    found = select(images, free)
    assert max(found.by_k.values()) < 3  # points, although the fallback is right on every image
    assert not judge(images, found, free).adds


def test_the_feature_that_difficulty_depends_on_is_selected_and_adds() -> None:
    draw = np.random.default_rng(4)
    brightness = draw.random(IMAGES)
    images = known(
        np.column_stack([draw.random(IMAGES), brightness, draw.random(IMAGES)]), "a brightness b", brightness > 0.5
    )
    found = select(images, free)
    assert found.features == ("brightness",)
    assert found.importance["brightness"] > 5 > abs(found.importance["a"])
    assert [number for number, _, _ in found.counts] == [3, 2, 1]
    judged = judge(images, found, free)
    assert judged.adds
    assert judged.lift == pytest.approx(0.25, abs=0.03)  # 1, beside half of either model at random: 0.75


def test_features_that_only_tell_together_both_stay() -> None:
    draw = np.random.default_rng(1)
    left, up = draw.integers(0, 2, (2, 200))
    places = np.column_stack([left, up]) + draw.uniform(-0.1, 0.1, (200, 2))
    images = known(np.column_stack([places, draw.uniform(0, 0.5, 200)]), "left up noise", left != up)
    assert select(images, free).features == ("left", "up")


def test_a_feature_that_costs_more_than_it_adds_goes() -> None:
    draw = np.random.default_rng(6)
    most, rest = draw.random((2, IMAGES))
    images = known(np.column_stack([most, np.round(rest - 0.3)]), "most rest", (most > 0.5) != (rest > 0.8))
    assert select(images, free).features == ("most", "rest")
    assert select(images, lambda names: 0.2 if "rest" in names else 0.0).features == ("most",)


@pytest.mark.parametrize(
    ("fold_of", "most"),
    [
        ([0, 1, 0, 1], 25.0),  # a twin in another fold is the nearest: the choice is right on all, 50 % + 25 at random
        ([0, 0, 1, 1], -25.0),  # the twin in the own fold does not vote; those on the other side do
    ],
)
def test_neighbours_of_the_own_fold_never_vote(fold_of: list[int], most: float) -> None:
    line = np.array([[0.0], [0.1], [1.0], [0.9]], np.float32)
    votes = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    images = Known(line, ("x",), votes, votes, np.array(fold_of), 1)
    assert select(images, free).by_k == {1: 2 * most}


def test_a_coin_between_the_cheapest_and_the_best_prices_time() -> None:
    right = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 1, 0]], bool)
    assert time_price(right, np.array([1.0, 3.0, 9.0])) == pytest.approx(0.5 / 2)  # of two best the cheaper
    assert time_price(right[:1], np.array([1.0, 3.0, 9.0])) == 0


def test_what_is_mostly_left_to_the_fallback_adds_nothing() -> None:
    assert Judgement(lift=0.05, error=0.01, cost=0.01, doubt=0.4).adds
    assert not Judgement(lift=0.05, error=0.01, cost=0.01, doubt=0.6).adds
    assert not Judgement(lift=0.05, error=0.01, cost=0.04, doubt=0.4).adds
