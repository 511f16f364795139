"""What is kept of what was measured: so much of it, so long, and its percentiles by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jetsel.base.recent import FORGET_S, MOST, WINDOW_S, Estimate, Percentiles, Recent, percentiles


def column(values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7.0], (7, 7, 7)),
        ([4.0, 1.0, 3.0, 2.0], (2, 4, 4)),
        ([float(i) for i in range(100, 0, -1)], (50, 95, 99)),
        ([float(i) for i in range(1, 21)], (10, 19, 20)),
        ([1.0, math.nan, 3.0], (1, 3, 3)),
    ],
)
def test_percentiles_are_the_least_value_that_so_many_are_no_larger_than(
    values: list[float], expected: tuple[float, float, float]
) -> None:
    assert percentiles(column(values)) == Percentiles(*expected)


@pytest.mark.parametrize("values", [[], [math.nan, math.nan]])
def test_where_nothing_happened_there_are_no_percentiles(values: list[float]) -> None:
    assert percentiles(column(values)) is None


def test_the_rows_that_were_noted_last_are_kept() -> None:
    recent = Recent(2)
    for i in range(MOST + 3):
        recent.add(10.0, i, -i)
    rows, oldest_s = recent.kept().since(12.5)
    assert sorted(rows[:, 0].tolist()) == list(range(3, MOST + 3))
    assert (rows[:, 0] == -rows[:, 1]).all()
    assert oldest_s == 2.5


def test_a_row_is_let_go_when_it_is_too_old() -> None:
    recent = Recent(1)
    assert recent.kept().since(0.0)[1] is None
    recent.add(0.0, 1.0)
    recent.add(100.0, 2.0)
    rows, oldest_s = recent.kept().since(WINDOW_S)
    assert (rows.tolist(), oldest_s) == ([[1.0], [2.0]], WINDOW_S)
    rows, oldest_s = recent.kept().since(WINDOW_S + 1)
    assert (rows.tolist(), oldest_s) == ([[2.0]], WINDOW_S - 99)
    rows, oldest_s = recent.kept().since(1000.0)
    assert (rows.tolist(), oldest_s) == ([], None)


def test_what_is_looked_at_stays_while_more_is_noted() -> None:
    recent = Recent(1)
    recent.add(0.0, 1.0)
    kept = recent.kept()
    for _ in range(MOST):
        recent.add(0.0, 2.0)
    assert kept.since(0.0)[0].tolist() == [[1.0]]
    assert percentiles(recent.kept().since(0.0)[0][:, 0]) == Percentiles(2.0, 2.0, 2.0)


def test_before_anything_was_seen_it_is_what_is_known() -> None:
    assert Estimate().at(0.0) is None
    assert Estimate((10.0, 2.0)).at(5.0) == (10.0, 2.0)


def test_what_is_seen_often_decides() -> None:
    estimate = Estimate((10.0, 2.0))
    for number in range(100):
        estimate.add(50.0 + number % 2, number * 0.01)
    mean_ms, deviation_ms = estimate.at(1.0) or (0.0, 0.0)
    assert mean_ms == pytest.approx(50.5, abs=1.5)
    assert 0.3 < deviation_ms < 1.5


def test_one_that_became_slow_is_known_within_a_few_and_tried_again_later() -> None:
    estimate = Estimate((10.0, 1.0))
    for number in range(50):
        estimate.add(10.0, number * 0.1)
    for number in range(10):
        estimate.add(200.0, 5.0 + number * 0.1)
    slow_ms, _ = estimate.at(6.0) or (0.0, 0.0)
    later_ms, _ = estimate.at(6.0 + 8 * FORGET_S) or (0.0, 0.0)
    assert slow_ms > 100
    assert later_ms < 15


def test_one_time_alone_is_no_certainty_where_something_was_known() -> None:
    estimate = Estimate((10.0, 1.0))
    estimate.add(100.0, 0.0)
    mean_ms, _ = estimate.at(0.0) or (0.0, 0.0)
    assert 80 < mean_ms < 100
