"""What `jetsel calibrate` prints at its end: the report as text, with or without the page."""

from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from jetsel.calibrate.judge.findings import Findings
from jetsel.cli.calibrate import outcome_lines
from tests.unit.calibrate.report import sample

OUTCOME = {"installed": None, "daemon": None, "report": None, "is_served": False}


def printed(findings: Findings, columns: int) -> list[str]:
    """The lines on a terminal of this width."""
    out = Console(width=columns, highlight=False, markup=False)
    with out.capture() as captured:
        for line in outcome_lines(findings, OUTCOME):
            out.print(line, soft_wrap=isinstance(line, str))
    return captured.get().splitlines()


def test_without_the_page_the_report_is_printed_and_the_extra_is_named() -> None:
    lines = printed(sample.findings(), 100)
    text = "\n".join(lines)
    for said in (
        "cascade (in use now)",
        "oracle",
        "by 101 neighbours in 2 features",
        "cascade answers 41 % of the images",
    ):
        assert said in text
    assert "pip install 'jetsel[calibrate]'" in lines[-1]


def test_the_table_of_twelve_models_fits_fifteen_lines_of_a_hundred_columns() -> None:
    lines = printed(sample.of_twelve_models(), 100)
    end = next(place for place, line in enumerate(lines) if line.startswith("The premodel"))
    assert end <= 15
    assert max(map(len, lines[:end])) <= 100
    names = [line.split()[0] for line in lines[3 : end - 1]]
    assert names[:3] == ["cascade", "the", "chain"]
    assert {"single:lite11-420-int8", "oracle"} <= set(names)
    assert "single:lite4-280-int8" not in names, "faster ones are more accurate"
    assert lines[end - 1].startswith("not shown: 5 single models")


@pytest.mark.parametrize(
    ("changes", "done", "said"),
    [
        ({}, {"installed": 3, "is_served": True}, "installed as number 3: chain answers by default now, in place of"),
        ({"rival": "chain"}, {"installed": 3, "is_served": True}, "installed as number 3: chain goes on answering"),
        ({}, {"installed": 3}, "installed as number 3: its default policy is chain;"),  # another daemon, or none
        ({}, {}, "nothing was installed: single:xl remains in use; --force installs chain"),
        ({"rival": "chain"}, {}, "nothing was installed: chain remains in use; --policy NAME installs another"),
        ({"is_allowed": False}, {}, "nothing was installed: no policy is within the limits"),
    ],
)
def test_one_sentence_names_what_is_installed_and_what_that_changes(
    changes: dict[str, Any], done: dict[str, object], said: str
) -> None:
    allowed = changes.pop("is_allowed", True)
    findings = replace(sample.findings(), is_allowed=allowed)
    findings = sample.with_facts(findings, default_policy="chain", **changes)
    assert any(str(line).startswith(said) for line in outcome_lines(findings, OUTCOME | done))
