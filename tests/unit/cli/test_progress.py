"""What `jetsel calibrate` prints at its end: the report as text, with or without the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jetsel.calibrate.calibrating import Calibrated
from jetsel.cli.progress import Output
from tests.unit.calibrate.report import sample

FOUND = Calibrated(None, sample.findings(), is_better=True)  # type: ignore[arg-type]


def test_without_the_page_the_report_is_printed_and_the_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).finished(FOUND, None, None, None)
    printed = " ".join(capsys.readouterr().out.split())
    for said in (
        "cascade-averaged",
        "oracle",
        "beside a coin",
        "k = 9",
        "xs -> xl -> m",
        "pip install 'jetsel[calibrate]'",
    ):
        assert said in printed


def test_programs_are_told_that_there_is_no_page(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).finished(FOUND, None, None, None)
    Output(as_json=True).finished(FOUND, Path("report.html"), None, None)
    without, with_page = map(json.loads, capsys.readouterr().out.splitlines())
    assert (without["report"], with_page["report"]) == (None, "report.html")
    assert without["winner"] == FOUND.findings.winner
