"""Every measure of the experiments by hand, or against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from calibration.measures import best_mix, macro, mean_interval


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 5)), min_size=1, max_size=30))
def test_macro_averages_are_scikit_learn_s(pairs: list[tuple[int, int]]) -> None:
    truth, answered = np.array(pairs).T
    expected = precision_recall_fscore_support(
        truth, answered, labels=np.unique(truth), average="macro", zero_division=0
    )
    assert macro(truth, answered) == pytest.approx(expected[:3])


def test_the_interval_of_a_mean_by_hand() -> None:
    # 1 to 4: mean 2.5, deviation sqrt(5/3), error half of it.
    found = mean_interval(np.array([1.0, 2.0, 3.0, 4.0]))
    half = 1.959964 * (5 / 3) ** 0.5 / 2
    assert (found.low, found.high) == pytest.approx((2.5 - half, 2.5 + half))


def test_the_best_mix_of_two_models_in_a_mean_time() -> None:
    times_ms, shares = np.array([1.0, 3.0, 10.0, 4.0]), np.array([0.4, 0.6, 0.9, 0.5])
    assert best_mix(times_ms, shares, 0.5) is None
    assert best_mix(times_ms, shares, 1.0) == pytest.approx(0.4)
    assert best_mix(times_ms, shares, 2.0) == pytest.approx(0.5)  # half of each of the first two
    assert best_mix(times_ms, shares, 6.5) == pytest.approx(0.75)  # the last one is never worth it
    assert best_mix(times_ms, shares, 20.0) == pytest.approx(0.9)
    assert best_mix(times_ms, np.array([0.6, 0.4, 0.3, 0.2]), 5.0) == pytest.approx(0.6)  # the fastest is the best
