"""The daemon's state in print: lines, one table for each family, and spans of time in words."""

from __future__ import annotations

import msgspec
import pytest
from rich.console import Console

from jetsel import wire
from jetsel.cli.status import about, duration, models_table, summary
from jetsel.cli.terminal import milliseconds
from tests.unit.client.peer import Seen, status

REPLY = status(Seen(wire.Status(1, "x"), None))


def test_the_summary_tells_of_the_daemon_as_a_whole() -> None:
    assert summary(REPLY) == [
        "jetsel 9.9.9 is ready: process 4711, up 1 d 2 h, 121 MB resident",
        "listens on ipc:///run/x.sock",
        "requests: 1 busy, 7 ok; 2 waiting (1.5 MB), 3 replies lost to clients that do not read",
    ]


def test_how_far_the_loading_is_stands_behind_the_state() -> None:
    building = msgspec.structs.replace(REPLY, state="loading", progress="building 2 of 5")
    assert summary(building)[0].startswith("jetsel 9.9.9 is loading (building 2 of 5): process 4711")


def test_what_is_not_known_or_did_not_happen_is_left_out() -> None:
    quiet = msgspec.structs.replace(REPLY, resident_mb=None, requests={}, lost_replies=0, in_queue=0, queued_bytes=0)
    assert summary(quiet)[0].endswith("up 1 d 2 h")
    assert summary(quiet)[2] == "requests: none yet; 0 waiting (0.0 MB)"


def test_the_table_has_a_row_for_each_model_and_the_reason_of_one_that_failed() -> None:
    console = Console(width=120, highlight=False)
    with console.capture() as captured:
        console.print(models_table(REPLY.families[0]))
    lines = captured.get().splitlines()
    assert lines[0].strip() == "family f: 2 classes"
    assert lines[-3].split() == ["m", "1.0.0", "onnxruntime", "ready", "7", "1.50", "12.2"]
    assert lines[-2].split() == ["big", "1.0.0", "tensorrt", "unavailable:", "out", "of", "memory", "0", "-", "-"]


def test_what_decides_is_told_for_each_criterion_where_they_differ() -> None:
    assert about(REPLY.families[0]) == [
        "policy: cascade for top1, single:m for top5 (it does best)",
        "a request may also name: single:m, cascade",
        "in doubt: m; calibration: none",
    ]
    alike = msgspec.structs.replace(
        REPLY.families[0], default_policy={"top1": "cascade", "top5": "cascade"}, fallback=None, calibration="of May"
    )
    assert about(alike)[0] == "policy: cascade (it does best)"
    assert about(alike)[2] == "in doubt: refuse; calibration: of May"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (93_784, "1 d 2 h"), (86_401, "1 d 1 s")],
)
def test_a_time_span_has_its_two_largest_units(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "-"), (0.0123, "0.01"), (9.876, "9.88"), (12.345, "12.3"), (123.45, "123")]
)
def test_a_time_has_three_digits_that_mean_something(value: float | None, expected: str) -> None:
    assert milliseconds(value) == expected
