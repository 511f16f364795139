"""What the log says of retiming at the first start, and that a machine that is too busy is tried again."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from jetsel.daemon.first_start import retime

UNTIL_IT_IS_THERE = """
import pathlib, sys, threading
if not pathlib.Path(sys.argv[1]).exists():
    threading.Event().wait()
print("ms per image: s 1.0")
"""


def test_a_run_that_exceeds_the_limit_is_repeated_once_the_machine_is_quiet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jetsel.models")
    quiet = tmp_path / "quiet"
    command = [sys.executable, "-c", UNTIL_IT_IS_THERE, str(quiet)]
    retime("yard", command, [0.1, 600.0], quiet.touch)
    busy, done = [record.getMessage() for record in caplog.records]
    assert "too busy" in busy
    assert "tries again when it is quiet" in busy
    assert done == "family yard: ms per image: s 1.0"


@pytest.mark.parametrize(
    ("source", "reason"),
    [("raise SystemExit('jetsel: s cannot run')", "s cannot run"), ("import os; os.abort()", "was ended")],
)
def test_a_failure_is_one_plain_line(source: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    retime("yard", [sys.executable, "-c", source], [600.0], lambda: None)
    (record,) = caplog.records
    assert record.getMessage().endswith(reason)
    assert "python" not in record.getMessage()
