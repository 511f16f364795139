"""The share of right choices by distance against scikit-learn, and limits found by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from calibration.papers.taylor.soundness import STEPS, fit_soundness, non_increasing


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5)), min_size=1, max_size=7))
def test_pooling_is_the_best_non_increasing_sequence(pairs: list[tuple[int, int]]) -> None:
    values, weights = [value / 8 for value, _ in pairs], [float(weight) for _, weight in pairs]
    found = non_increasing(np.array(values), np.array(weights))
    places = np.arange(len(values))
    theirs = IsotonicRegression(increasing=False).fit(places, values, weights).predict(places)
    assert found.tolist() == pytest.approx(theirs.tolist())


def test_the_confidence_by_hand() -> None:
    # Near to far: right, wrong, right, wrong. The middle two violate the order and are pooled.
    distances, right = np.array([0.3, 0.1, 0.4, 0.2]), np.array([True, True, False, False])
    found = fit_soundness(distances, right, np.zeros(4, bool))
    assert found.steps == ((0.1, 1.0), (0.3, 0.5), (0.4, 0.0))


@given(seed=st.integers(0, 10_000), photographs=st.integers(1, 100), distinct=st.integers(1, 60))
def test_the_confidence_falls_with_the_distance_and_is_true_in_the_mean(
    seed: int, photographs: int, distinct: int
) -> None:
    draw = np.random.default_rng(seed)
    distances = draw.integers(0, distinct, photographs) / 8
    right = draw.random(photographs) < 0.6
    found = fit_soundness(distances, right, ~right)
    ends, shares = zip(*found.steps, strict=True)
    assert len(found.steps) <= STEPS
    assert all(a < b for a, b in itertools.pairwise(ends))
    assert all(a > b for a, b in itertools.pairwise(shares))
    assert ends[-1] == distances.max()
    step_of = np.searchsorted(ends, distances)
    assert np.array(shares)[step_of].mean() == pytest.approx(right.mean())


LINE = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]


@pytest.mark.parametrize(
    ("distances", "right", "fallback", "limit"),
    [
        # The four farthest lose one each: 4 in sum, two standard errors (2 sqrt 4) are 4 as well.
        (LINE, [1] * 6 + [0] * 4, [0] * 6 + [1] * 4, 6.0),
        # Three lose 3, two standard errors are 3.46.
        (LINE, [1] * 7 + [0] * 3, [0] * 7 + [1] * 3, None),
        # One that neither gets right, or both, changes nothing: five and two of those.
        (LINE, [1] * 3 + [0, 0, 0, 1, 0, 0, 0], [0] * 3 + [1, 1, 0, 1, 1, 1, 1], 3.0),
        # The middle loses four, but the end wins them back.
        (LINE, [1, 1, 0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0, 0, 0], None),
        # All but the nearest lose: 2 a photograph apart, but the error of one and nine is sqrt(1 + 1 / 9) = 1.05.
        (LINE, [1] + [0] * 9, [0] + [1] * 9, None),
        (LINE, [1] * 2 + [0] * 8, [0] * 2 + [1] * 8, 2.0),  # of two and eight, sqrt(1 / 2 + 1 / 8) = 0.79
        # Six at one distance, of which one wins and four lose: none of them is beyond it alone.
        ([1, 2, 3, 4, 6, 6, 6, 6, 6, 6], [1] * 6 + [0] * 4, [1] * 5 + [0] + [1] * 4, None),
        # At two distances: the four that lose lie behind.
        ([1, 2, 3, 4, 6, 6, 7, 7, 7, 7], [1] * 6 + [0] * 4, [1] * 5 + [0] + [1] * 4, 6.0),
    ],
)
def test_the_limit_by_hand(distances: list[float], right: list[int], fallback: list[int], limit: float | None) -> None:
    found = fit_soundness(np.array(distances, float), np.array(right, bool), np.array(fallback, bool))
    assert found.limit == limit


def test_where_the_distance_tells_nothing_chance_sets_no_limit() -> None:
    # The fallback is better by the same share near and far. Whether the very nearest wins is a coin's fall.
    limits = []
    for seed in range(50):
        draw = np.random.default_rng(seed)
        right = draw.random(2000) < 0.6
        fallback = (right | (draw.random(2000) < 0.2)) & (draw.random(2000) > 0.05)
        limits.append(fit_soundness(draw.random(2000), right, fallback).limit)
    assert sum(limit is not None for limit in limits) <= 5
