"""Faults that repeat: a few lines of each kind, then counts."""

from __future__ import annotations

from typing import Any

from jetsel.daemon.logs.flood import LINES, MORE_LINES, WINDOW_S, Flood
from tests.unit.daemon.logs.records import record


def told(flood: Flood, count: int, now_s: float, **fields: Any) -> int:
    """How many of so many equal lines are told at this moment."""
    return sum(flood.is_told(record("m failed", **{"name": "model-failed", **fields}), now_s) for _ in range(count))


def test_the_first_lines_of_a_kind_are_told_and_the_rest_is_counted() -> None:
    flood = Flood()
    assert told(flood, 600, 0.0) == LINES
    assert flood.next_s == WINDOW_S
    assert flood.over(WINDOW_S - 0.1) == []
    ((last, count),) = flood.over(WINDOW_S)
    assert (last.getMessage(), count) == ("m failed", 600 - LINES)
    assert flood.next_s is None


def test_while_it_goes_on_only_counts_are_told_and_after_a_quiet_window_lines_again() -> None:
    flood = Flood()
    told(flood, 100, 0.0)
    flood.over(10.0)
    assert told(flood, 50, 11.0) == 0
    assert [count for _, count in flood.over(20.0)] == [50]
    assert flood.over(30.0) == []
    assert told(flood, 3, 31.0) == 3


def test_a_few_lines_make_no_count() -> None:
    flood = Flood()
    assert told(flood, LINES, 0.0) == LINES
    assert flood.over(WINDOW_S) == []


def test_lines_about_different_models_or_of_different_events_do_not_crowd_each_other_out() -> None:
    flood = Flood()
    assert [told(flood, 9, 0.0, model=f"m{number}") for number in range(20)] == [LINES] * 20
    assert told(flood, 9, 0.0, name="model-back") == LINES


def test_requests_that_were_asked_for_are_all_told() -> None:
    assert told(Flood(), 10_000, 0.0, name="request") == 10_000


def test_what_a_process_prints_has_room_for_a_traceback() -> None:
    assert told(Flood(), 200, 0.0, name="host-output") == MORE_LINES["host-output"] > 60


def test_what_was_told_once_is_forgotten() -> None:
    flood = Flood()
    for number in range(1000):
        told(flood, 1, 0.0, model=f"m{number}")
    flood.over(WINDOW_S)
    assert not flood._windows
