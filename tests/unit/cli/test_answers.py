"""Answers in print: the one JSON object that programs read, the rows and the lines that people read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from jetsel import wire
from jetsel.base.errors import BusyError
from jetsel.cli.answers import Outcome, as_plain, details, print_table
from tests.unit.client.peer import Seen, answer


def outcome(result: Any = None, **changes: Any) -> Outcome:
    explain = changes.pop("explain", False)
    found = answer(Seen(wire.Classify(1, "x", explain=explain), b""), label="tabby, small")
    return Outcome("cat.jpg", 12.34567, result or msgspec.structs.replace(found, **changes))


Printed = Callable[..., list[str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """The lines of the table of some outcomes, without the empty ones."""

    def lines(*outcomes: Outcome) -> list[str]:
        print_table(outcomes)
        return [line for line in capsys.readouterr().out.splitlines() if line.strip()]

    return lines


def test_the_json_object_is_the_reply_with_the_path_and_the_time_here() -> None:
    found = outcome()
    plain = as_plain(found)
    assert (plain.pop("path"), plain.pop("latency_ms")) == ("cat.jpg", 12.346)
    assert msgspec.convert(plain, wire.Answer) == found.result


def test_a_failure_has_its_code_instead_of_an_answer() -> None:
    assert as_plain(outcome(BusyError("full:\n  wait"))) == {
        "path": "cat.jpg",
        "error": {"code": "busy", "message": "full: wait", "retry": True},
    }
    assert as_plain(outcome(FileNotFoundError(2, "No such file or directory"))) == {
        "path": "cat.jpg",
        "error": {"code": "unreadable", "message": "No such file or directory", "retry": False},
    }


def test_a_row_says_who_answered_and_what_it_took_without_waiting(printed: Printed) -> None:
    stages = wire.Stages(
        queue=900.0, decode=2.0, features=None, choice=0.5, inference=[4.0, 24.0], total=1000.0, waiting=80.0, input=1.5
    )
    ran = [wire.Ran("s", "first rung", 0.4, 4.0, 1), wire.Ran("m", "s was not sure", 0.75, 24.0, 4)]  # four in a batch
    waited = outcome(energy_mj=12.34, energy_reason=None, stages_ms=stages, ran=ran)
    lines = printed(waited, outcome(in_doubt=True, energy_reason="no meter"))
    assert lines[2].split() == ["cat.jpg", "tabby,", "small", "75%", "m", "s,", "m", "14.0", "12.3"]
    assert lines[3].split() == ["cat.jpg", "tabby,", "small", "(in", "doubt)", "75%", "m", "m", "2.50", "-"]
    assert lines[4] == "energy not known: no meter"


def test_names_that_look_like_markup_are_printed_as_they_are(printed: Printed) -> None:
    strange = msgspec.structs.replace(outcome().result, label="[bold]x[/]", model="[red]")  # type: ignore[type-var]
    row = printed(Outcome("[/a].jpg", 1.0, strange))[2]
    for name in ("[/a].jpg", "[bold]x[/]", "[red]"):
        assert name in row


def test_energy_is_marked_as_estimated(printed: Printed) -> None:
    estimated = outcome(energy_mj=12.34, energy_reason=None, energy_estimated=True)
    assert any("12.3 mJ (estimated" in line for line in details(estimated))
    assert printed(estimated)[2].split()[-1] == "~12.3"
