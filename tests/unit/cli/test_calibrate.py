"""What `jetsel calibrate` prints at its end: the report as text, with or without the page."""

from __future__ import annotations

import pytest

from jetsel.calibrate.calibrating import Calibrated
from jetsel.cli.calibrate import outcome_lines
from jetsel.cli.terminal import console
from tests.unit.calibrate.report import sample

FOUND = Calibrated(None, sample.findings(), is_better=True)  # type: ignore[arg-type]


def test_without_the_page_the_report_is_printed_and_the_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    parts = list(outcome_lines(FOUND, {"verdict": "chain wins", "installed": None, "daemon": None, "report": None}))
    for part in parts:
        console().print(part)
    printed = " ".join(capsys.readouterr().out.split())
    for said in ("cascade-averaged", "oracle", "beside a coin", "k = 9", "xs -> xl -> m"):
        assert said in printed
    assert "pip install 'jetsel[calibrate]'" in str(parts[-1])
