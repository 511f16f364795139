"""The host is tried under the Python of every board; one that is missing is named, with what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.host import interpreters

CONSTRAINTS = Path(__file__).parents[2] / "constraints"


@pytest.mark.parametrize("interpreter", interpreters.asked())
def test_the_host_is_tried_under_it(interpreter: str) -> None:
    reason = interpreters.why_not(interpreter)
    if reason is not None and interpreters.is_named(interpreter):
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(reason)
    assert interpreters.resolved(interpreter) in interpreters.found()


def test_the_setting_takes_the_place_of_the_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(interpreters.SETTING, f"/nonexistent/bin/python:{sys.executable}")
    assert interpreters.asked() == ["/nonexistent/bin/python", sys.executable]
    assert interpreters.found() == [sys.executable, sys.executable]
    monkeypatch.setenv(interpreters.SETTING, "")
    assert interpreters.asked() == ["python3.6", "python3.8", "python3.10", "python3.12"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("echo 'no such module' >&2; exit 1", "(no such module)"),
        ("echo 'Traceback:' >&2; echo \"ModuleNotFoundError: No module named 'numpy'\" >&2; exit 1", "'numpy')"),
        ("exit 3", "(exit status 3)"),
    ],
)
def test_one_that_cannot_serve_says_why_and_what_to_do(tmp_path: Path, lines: str, said: str) -> None:
    broken = tmp_path / "python3.6"
    broken.write_text(f"#!/bin/sh\n{lines}\n")
    broken.chmod(0o755)
    reason = interpreters.why_not(str(broken))
    assert reason is not None
    assert said in reason
    assert "run make test-host, or name interpreters in JETSEL_HOST_PYTHONS" in reason
    assert "there is no /nonexistent/python: run make" in str(interpreters.why_not("/nonexistent/python"))


def test_every_board_s_python_has_versions_to_be_tried_with() -> None:
    pinned = {path.stem.removeprefix("host-") for path in CONSTRAINTS.glob("host-*.txt")}
    assert pinned == {board.removeprefix("python") for board in interpreters.BOARDS}
