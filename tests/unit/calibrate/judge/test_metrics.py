"""Every measure by hand, from a textbook, or against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from jetsel.calibrate.judge.metrics import best_mix, macro, mean_interval, share_interval, undominated
from jetsel.calibrate.judge.results import calibration_error, reliability
from tests.unit.calibrate.recorded import margin, of_two_classes


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 5)), min_size=1, max_size=30))
def test_macro_averages_are_scikit_learn_s(pairs: list[tuple[int, int]]) -> None:
    truth, answered = np.array(pairs).T
    expected = precision_recall_fscore_support(
        truth, answered, labels=np.unique(truth), average="macro", zero_division=0
    )
    assert macro(truth, answered) == pytest.approx(expected[:3])


@pytest.mark.parametrize(
    ("right", "photographs", "low", "high"),
    [  # Newcombe 1998, Two-sided confidence intervals for the single proportion, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),  # 1 less the interval of none of 29: z^2 / (29 + z^2) = 0.1170
    ],
)
def test_wilson_s_interval_by_the_book(right: int, photographs: int, low: float, high: float) -> None:
    found = share_interval(np.arange(photographs) < right)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_photographs_that_are_there_twice_count_once() -> None:
    once = np.arange(100) < 60
    twice, groups = np.repeat(once, 2), np.repeat(np.arange(100), 2)
    grouped, alone = share_interval(twice, groups), share_interval(once)
    assert (grouped.low, grouped.high) == pytest.approx((alone.low, alone.high))
    apart = share_interval(twice)
    assert grouped.high - grouped.low > 1.3 * (apart.high - apart.low)


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


def test_only_what_nothing_beats_is_on_the_front() -> None:
    slow, good, fast = (4.0, 60.0, "slow"), (2.0, 63.0, "good"), (1.0, 50.0, "fast")
    assert undominated([slow, good, fast, (2.0, 62.0, "worse")]) == [fast, good]


def test_the_calibration_error_by_hand() -> None:
    # Four bins: 0 to 0.25, 0.25 to 0.5, none from 0.5 to 0.75, and the last with 0.9 and 1. Gaps 0.1, 0.7 and 0.45.
    confidences, right = np.array([0.1, 0.3, 0.9, 1.0], np.float32), np.array([False, True, True, False])
    assert calibration_error(confidences, right, 4) == pytest.approx((0.1 + 0.7 + 2 * 0.45) / 4)


def test_the_error_of_a_model_before_and_after_its_temperature() -> None:
    # Four times a probability of 0.8, three of them right. Odds of 4 become, at temperature 2, odds of 2.
    recording = of_two_classes([margin(0.8)] * 4, [margin(0.6)] * 4, classes=[0, 0, 0, 1])
    first, second = reliability(recording, {"s": 2.0, "m": 1.0})
    assert (first.model, first.temperature, second.model, second.temperature) == ("s", 2.0, "m", 1.0)
    assert (first.error_before, first.error_after) == pytest.approx((0.05, 0.75 - 2 / 3), abs=1e-6)
    assert second.error_before == second.error_after == pytest.approx(0.15)
