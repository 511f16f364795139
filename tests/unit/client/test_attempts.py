"""How long a call waits: pauses that double, and the failures that end it."""

from __future__ import annotations

import pytest

from jetsel.base.errors import BusyError, LoadingError, NoDaemonError, NoReplyError
from jetsel.client.link import FIRST_PAUSE_S, LONGEST_PAUSE_S, MOST_LOSSES, Attempts


def test_pauses_double_up_to_the_longest_and_none_is_under_half_of_its_own() -> None:
    attempts = Attempts(timeout_ms=1e6)
    for attempt in range(12):
        expected = min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S)
        pause_s = attempts.pause_s(BusyError("full"))
        assert pause_s is not None
        assert expected / 2 <= pause_s <= expected


def test_nobody_there_from_the_start_is_final_and_later_it_is_a_restart() -> None:
    assert Attempts(1e6).pause_s(NoDaemonError("gone")) is None
    attempts = Attempts(1e6)
    assert attempts.pause_s(LoadingError("wait")) is not None
    assert attempts.pause_s(NoDaemonError("gone")) is not None


def test_a_connection_that_is_lost_again_and_again_is_final() -> None:
    attempts = Attempts(1e6)
    for _ in range(MOST_LOSSES):
        assert attempts.pause_s(NoReplyError("lost")) is not None
    assert attempts.pause_s(NoReplyError("lost")) is None


@pytest.mark.parametrize("attempts", [Attempts(FIRST_PAUSE_S * 0.49e3), Attempts(1e6, FIRST_PAUSE_S * 0.49e3)])
def test_no_attempt_begins_past_the_timeout_or_the_deadline(attempts: Attempts) -> None:
    assert attempts.pause_s(BusyError("full")) is None


def test_what_is_left_shrinks_with_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    attempts = Attempts(timeout_ms=500, deadline_ms=200)
    now_s = 100.125
    assert attempts.left_ms == 375
    assert attempts.deadline_left_ms == 75
    assert Attempts(500).deadline_left_ms is None
