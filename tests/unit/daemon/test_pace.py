"""What a request may take by the queue, and how long the cheapest operating point is in use."""

from __future__ import annotations

import logging

import pytest

from jetsel.daemon.pace import ALERT_S, PointsUsed, allowed_ms


def test_half_of_the_target_is_shared_among_all_that_wait_less_what_is_done_around_the_models() -> None:
    assert allowed_ms(100.0, 1, 1, 3.0) == pytest.approx(47.0)
    assert allowed_ms(100.0, 10, 2, 3.0) == pytest.approx(7.0)
    assert allowed_ms(100.0, 1000, 2, 3.0) < 0


def used(points: PointsUsed, begin_s: int, end_s: int, *, cheapest: bool = True) -> None:
    for now_s in range(begin_s, end_s):
        points.answered("cascade:9" if cheapest else "cascade", is_cheapest=cheapest, now_s=float(now_s))


def test_five_minutes_at_the_cheapest_point_are_told_once_and_again_after_a_pause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    points, alert_s = PointsUsed("cats"), int(ALERT_S)
    used(points, 0, alert_s)
    assert caplog.messages == []
    used(points, alert_s, 2 * alert_s)
    assert len(caplog.messages) == 1
    assert "cats has been at its cheapest operating point" in caplog.messages[0]
    assert points.cheapest_s(2.0 * alert_s) == 2 * alert_s
    used(points, 2 * alert_s, 2 * alert_s + 60, cheapest=False)
    assert points.cheapest_s(2.0 * alert_s + 60) == 0.0
    used(points, 2 * alert_s + 60, 3 * alert_s + 62)
    assert len(caplog.messages) == 2
    assert points.answers() == {"cascade:9": 3 * alert_s + 2, "cascade": 60}
