"""What `jetsel calibrate` prints at its end: the report as text, with or without the page."""

from __future__ import annotations

import pytest

from jetsel.calibrate.calibrating import Calibrated
from jetsel.cli.calibrate import outcome_lines
from jetsel.cli.terminal import console
from tests.unit.calibrate.report import sample

FOUND = Calibrated(None, sample.findings(), None, is_better=True, is_allowed=True)  # type: ignore[arg-type]
OUTCOME = {"verdict": "chain wins", "winner": "chain", "rival": "single:xl", "is_allowed": True, "installed": None}
OUTCOME |= {"daemon": None, "report": None, "is_served": False}


def test_without_the_page_the_report_is_printed_and_the_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    parts = list(outcome_lines(FOUND, OUTCOME))
    for part in parts:
        console().print(part)
    printed = " ".join(capsys.readouterr().out.split())
    for said in (
        "cascade",
        "oracle",
        "beside a coin",
        "by 101 neighbours in 2 features",
        "cascade answers 41 % of the images",
    ):
        assert said in printed
    assert "pip install 'jetsel[calibrate]'" in str(parts[-1])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"installed": 3, "is_served": True}, "installed as number 3: chain answers by default now, in place of"),
        ({"installed": 3, "is_served": True, "rival": "chain"}, "installed as number 3: chain still answers"),
        ({"installed": 3}, "installed as number 3: its default policy is chain;"),  # another daemon, or none
        ({}, "nothing was installed: single:xl remains in use; --force installs chain, --policy NAME installs another"),
        ({"rival": "chain"}, "nothing was installed: chain remains in use; --policy NAME installs another"),
        ({"is_allowed": False}, "nothing was installed: no policy is within the limits, chain comes closest;"),
    ],
)
def test_one_sentence_names_what_is_installed_and_what_that_changes(changes: dict[str, object], said: str) -> None:
    assert any(str(line).startswith(said) for line in outcome_lines(FOUND, OUTCOME | changes))
