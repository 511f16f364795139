"""The page that `jetsel top` shows: the last reply, and what happened since the one before it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from rich.console import Console

from jetsel import wire
from jetsel.cli.status import page
from tests.unit.client.peer import Seen, status
from tests.unit.hollow import hollow

FIRST = replace(status(Seen(wire.Status(1, "x"), None)), uptime_s=100.0, requests={"ok": 10, "busy": 1})


def later(**changes: Any) -> wire.StatusReply:
    return replace(FIRST, uptime_s=102.0, **changes)


def shown(before: wire.StatusReply | None, now: wire.StatusReply, gone: str = "") -> list[str]:
    console = Console(width=200, height=100, highlight=False)
    with console.capture() as captured:
        console.print(page(before, now, "12:00:01", gone))
    return captured.get().splitlines()


def test_rates_are_of_the_daemons_own_time_since_the_look_before() -> None:
    lines = shown(FIRST, later(requests={"ok": 14, "busy": 1, "deadline": 3}))
    assert lines[0].endswith("; 12:00:01")
    (rate,) = [line for line in lines if "requests/s" in line]
    assert rate.split(": ")[1:] == ["3.5 requests/s in the last 2.0 s", "2.0 ok, 1.5 deadline"]
    assert any(line.startswith("requests: 14 ok") for line in lines)


def test_another_daemon_is_counted_since_its_start() -> None:
    restarted = replace(FIRST, instance="another", uptime_s=4.0, requests={"ok": 2})
    for before in (None, FIRST):
        assert "rate: 0.5 requests/s since the start: 0.5 ok" in shown(before, restarted)


def test_without_the_time_since_the_start_there_is_no_rate() -> None:
    assert "requests/s" not in " ".join(shown(None, hollow()))
