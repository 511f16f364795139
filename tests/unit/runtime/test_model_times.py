"""How long something takes, as it was of late."""

import pytest

from jetsel.runtime.model_times import FORGET_S, Estimate


def test_before_anything_was_seen_it_is_what_is_known() -> None:
    assert Estimate().mean_and_sd_ms(0.0) is None
    assert Estimate().mean_and_sd_ms(5.0, (10.0, 2.0)) == (10.0, 2.0)


def test_what_is_seen_often_decides() -> None:
    estimate = Estimate()
    for number in range(100):
        estimate.add(50.0 + number % 2, number * 0.01)
    mean_ms, deviation_ms = estimate.mean_and_sd_ms(1.0, (10.0, 2.0)) or (0.0, 0.0)
    assert mean_ms == pytest.approx(50.5, abs=1.5)
    assert 0.3 < deviation_ms < 1.5


def test_one_that_became_slow_is_known_within_a_few_and_tried_again_later() -> None:
    estimate = Estimate()
    for number in range(50):
        estimate.add(10.0, number * 0.1)
    for number in range(10):
        estimate.add(200.0, 5.0 + number * 0.1)
    slow_ms, _ = estimate.mean_and_sd_ms(6.0, (10.0, 1.0)) or (0.0, 0.0)
    later_ms, _ = estimate.mean_and_sd_ms(6.0 + 8 * FORGET_S, (10.0, 1.0)) or (0.0, 0.0)
    assert slow_ms > 100
    assert later_ms < 15


def test_one_time_alone_is_no_certainty_where_something_was_known() -> None:
    estimate = Estimate()
    estimate.add(100.0, 0.0)
    mean_ms, _ = estimate.mean_and_sd_ms(0.0, (10.0, 1.0)) or (0.0, 0.0)
    assert 80 < mean_ms < 100
