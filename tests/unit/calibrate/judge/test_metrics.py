"""Every measure by hand, or from a textbook."""

import numpy as np
import pytest

from jetsel.calibrate.judge.metrics import share_interval, undominated


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


def test_only_what_nothing_beats_is_on_the_front() -> None:
    slow, good, fast = (4.0, 60.0, "slow"), (2.0, 63.0, "good"), (1.0, 50.0, "fast")
    assert undominated([slow, good, fast, (2.0, 62.0, "worse")]) == [fast, good]
