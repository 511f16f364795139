"""The page that `jetsel top` shows: the last reply, and what happened since the one before it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from rich.console import Console
from rich.screen import Screen

from jetsel import wire
from jetsel.cli.top import View, page
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
    assert lines[1].split(": ")[1:] == ["3.5 requests/s over 2.0 s", "2.0 ok, 1.5 deadline"]
    assert any(line.startswith("requests: 14 ok") for line in lines)


def test_another_daemon_is_counted_since_its_start() -> None:
    restarted = replace(FIRST, instance="another", uptime_s=4.0, requests={"ok": 2})
    for before in (None, FIRST):
        assert shown(before, restarted)[1] == "now: 0.5 requests/s since the start: 0.5 ok"


def test_a_page_that_the_screen_does_not_hold_is_scrolled() -> None:
    console = Console(width=80, height=5, highlight=False)
    view = View()
    view.page = "\n".join(f"line {number}" for number in range(1, 10))

    def seen(first: int) -> list[str]:
        view.first = first
        with console.capture() as captured:
            console.print(Screen(view))
        return [line.rstrip() for line in captured.get().splitlines()]

    assert seen(0)[:4] == ["line 1", "line 2", "line 3", "line 4"]
    assert seen(0)[4].startswith("lines 1 to 4 of 9: ")
    assert seen(99)[:4] == ["line 6", "line 7", "line 8", "line 9"]
    assert view.first == 5, "no further than the end"
    view.page = "short"
    assert seen(3) == ["short", "", "", "", ""]


def test_without_the_time_since_the_start_there_is_no_rate() -> None:
    assert "requests/s" not in " ".join(shown(None, hollow()))
