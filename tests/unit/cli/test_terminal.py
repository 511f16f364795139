"""What commands print looks the same as it was written, whatever brackets it has."""

from __future__ import annotations

import pytest

from jetsel.cli.terminal import Output, console, table

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
