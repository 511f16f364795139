"""What commands print looks the same as it was written, whatever brackets it has."""

from __future__ import annotations

import pytest

from jetsel.calibrate.judge.findings import Interval, PromiseCheck
from jetsel.cli.terminal import Output, console, promises_table, table

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


def test_progress_prints_brackets_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Output(quiet=False) as output:
        output.step("candidate [bold]", 1, 1)
    assert "candidate [bold]" in capsys.readouterr().err


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
