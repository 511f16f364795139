"""The page that `jetsel top` shows: the last reply, and what happened since the one before it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from rich.console import Console

from jetsel import wire
from jetsel.cli.top import page
from tests.unit.client.peer import Seen, status

FIRST = replace(status(Seen(wire.Status(1, "x"), None)), uptime_s=100.0, requests={"ok": 10, "busy": 1})


def later(**changes: Any) -> wire.StatusReply:
    return replace(FIRST, uptime_s=102.0, **changes)


def with_model(reply: wire.StatusReply, **changes: Any) -> wire.StatusReply:
    family = reply.families[0]
    return replace(reply, families=[replace(family, models=[replace(family.models[0], **changes), family.models[1]])])


def shown(before: wire.StatusReply | None, now: wire.StatusReply, gone: str = "") -> list[str]:
    console = Console(width=200, height=100, highlight=False)
    with console.capture() as captured:
        console.print(page(before, now, "12:00:01", gone))
    return captured.get().splitlines()


def row(lines: list[str], model: str) -> list[str]:
    (found,) = [line.split() for line in lines if line.split()[:1] == [model]]
    return found


def test_rates_are_of_the_daemons_own_time_since_the_look_before() -> None:
    lines = shown(FIRST, later(requests={"ok": 14, "busy": 1, "deadline": 3}))
    assert lines[0].endswith("; 12:00:01")
    assert lines[1].split(": ")[1:] == ["3.5 requests/s over 2.0 s", "2.0 ok, 1.5 deadline"]
    assert lines[2].startswith("requests: 14 ok")


def test_models_have_their_runs_and_the_share_that_another_followed() -> None:
    lines = shown(with_model(FIRST, runs=20, escalations=10), with_model(later(), runs=30, escalations=12))
    assert row(lines, "m")[2:4] == ["5.0", "20%"]
    assert "-" in row(lines, "big"), "a model that has not run has no share"


def test_a_model_that_was_loaded_anew_counts_from_nothing() -> None:
    lines = shown(with_model(FIRST, runs=20, escalations=10), with_model(later(), runs=4, escalations=1))
    assert row(lines, "m")[2:4] == ["2.0", "25%"]


def test_another_daemon_is_counted_since_its_start() -> None:
    restarted = replace(FIRST, pid=FIRST.pid + 1, uptime_s=4.0, requests={"ok": 2})
    for before in (None, FIRST):
        assert shown(before, restarted)[1] == "now: 0.5 requests/s since the start: 0.5 ok"
