"""Round numbers on an axis, by hand, and where values fall between its ends."""

from __future__ import annotations

import math

import pytest

from jetsel.calibrate.report.ticks import Axis, linear_ticks, log_ticks, written


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 10.0, [0, 2, 4, 6, 8, 10]),  # 10 / 5 intervals = 2
        (44.0, 78.0, [50, 60, 70]),  # 34 / 5 = 6.8, rounded up to 10
        (0.0, 0.17, [0, 0.05, 0.1, 0.15]),  # 0.17 / 5 = 0.034, up to 0.05
        (-0.3, 1.9, [0, 0.5, 1, 1.5]),  # 2.2 / 5 = 0.44, up to 0.5
        (-7.0, -3.0, [-7, -6, -5, -4, -3]),  # 4 / 5 = 0.8, up to 1
    ],
)
def test_linear_ticks_are_multiples_of_the_least_round_step(low: float, high: float, expected: list[float]) -> None:
    assert linear_ticks(low, high) == pytest.approx(expected)


def test_an_axis_is_never_left_with_one_tick() -> None:
    # 6 / 3 intervals = 2: 54, 56, 58. 6.1 / 3 rounds up to 5, which gives 55 alone, so the step is 2 again.
    assert linear_ticks(53, 59, 3) == [54, 56, 58]
    assert linear_ticks(53, 59.1, 3) == [54, 56, 58]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.18, 4.5, [0.2, 0.5, 1, 2]),
        (0.9, 110.0, [1, 2, 5, 10, 20, 50, 100]),
        (0.9, 1100.0, [1, 10, 100, 1000]),  # ten of 1, 2, 5 would crowd: the powers alone
        (1.1, 1.9, [1.2, 1.4, 1.6, 1.8]),  # nothing of 1, 2, 5 inside: linear, step 0.2
    ],
)
def test_logarithmic_ticks(low: float, high: float, expected: list[float]) -> None:
    assert log_ticks(low, high) == pytest.approx(expected)


def test_very_many_decades_are_thinned_to_seven_at_most() -> None:
    assert log_ticks(1e-6, 1e6) == pytest.approx([1e-6, 1e-4, 1e-2, 1, 100, 1e4, 1e6])


def test_an_axis_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="low < high"):
        linear_ticks(1, 1)
    with pytest.raises(ValueError, match="logarithmic"):
        log_ticks(0, 1)


def test_a_value_falls_where_its_share_of_the_axis_is() -> None:
    linear = Axis("x", low=0, high=10, start=100, end=200)
    upward = Axis("y", low=0, high=10, start=200, end=100)
    log = Axis("t", low=0.1, high=10, start=0, end=100, log=True)
    assert linear.at(2.5) == pytest.approx(125)
    assert upward.at(2.5) == pytest.approx(175)
    assert [log.at(0.1), log.at(1), log.at(10)] == pytest.approx([0, 50, 100])


@pytest.mark.parametrize("values", [[], [5.0], [0.0], [math.nan, 2.0], [1e-9, 1e9]])
def test_an_axis_can_be_made_over_any_values(values: list[float]) -> None:
    for axis in (Axis.over("x", values, 0, 100), Axis.over("x", values, 0, 100, from_zero=True)):
        assert all(0 <= axis.at(value) <= 100 for value in values if math.isfinite(value))
        assert len(axis.ticks()) > 1
    log = Axis.log_over("x", values, 0, 100)
    assert all(0 <= log.at(value) <= 100 for value in values if math.isfinite(value) and value > 0)
    assert log.ticks()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (50.0, "50"), (0.05, "0.05"), (-0.2, "\u22120.2"), (1e6, "1000000"), (0.1 + 0.2, "0.3")],
)
def test_a_tick_is_written_without_exponent(value: float, text: str) -> None:
    assert written(value) == text
