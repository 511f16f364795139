"""What commands print on the terminal, and the page that `jetsel top` shows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.console import Console

from jetsel import wire
from jetsel.calibrate.judge.findings import Interval, PromiseCheck
from jetsel.cli.status import page
from jetsel.cli.terminal import console, promises_table, table
from tests.unit.client.peer import Seen, status

REPAIR = "pip install 'jetsel[export]'"


def test_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    shown = table("candidate", "[b]reason")
    shown.title = shown.caption = f"not made: {REPAIR}"
    shown.add_row("small", REPAIR)
    out = console()
    out.print(shown)
    out.print(f"line: {REPAIR}")
    printed = capsys.readouterr().out
    assert (printed.count(REPAIR), printed.count("[b]reason")) == (4, 1)


def test_promises_are_kept_or_broken_and_what_is_not_known_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    def check(
        level: float, answered: float, wrong: float | None, ends: Interval | None, *, is_kept: bool
    ) -> PromiseCheck:
        return PromiseCheck(
            policy="s", wrong_at_most=level, answered=answered, wrong=wrong, wrong_interval=ends, is_kept=is_kept
        )

    nothing = check(0.01, 0.0, None, None, is_kept=True)
    broken = check(0.1, 0.824, 0.153, Interval(0.121, 0.192), is_kept=False)
    console().print(promises_table([nothing, broken]))
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert {"1 0.0 - - kept", "10 82.4 15.3 12.1 to 19.2 broken"} <= set(printed)


FIRST = replace(status(Seen(wire.Status(1, "x"), None)), uptime_s=100.0, requests={"ok": 10, "busy": 1})


def shown(before: wire.StatusReply | None, now: wire.StatusReply, gone: str = "") -> list[str]:
    console = Console(width=200, height=100, highlight=False)
    with console.capture() as captured:
        console.print(page(before, now, "12:00:01", gone))
    return captured.get().splitlines()


def test_another_daemon_is_counted_since_its_start() -> None:
    restarted = replace(FIRST, instance="another", uptime_s=4.0, requests={"ok": 2})
    for before in (None, FIRST):
        assert "rate: 0.5 requests/s since the start: 0.5 ok" in shown(before, restarted)
