"""A process of ours: it ends with all that it started, and how it ended is told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jetsel.engines.hosting.child import Child
from tests.waiting import until


def shell(script: str, output: int = subprocess.PIPE) -> Child:
    return Child(["/bin/sh", "-c", script], output=output)


def test_what_it_prints_is_returned_errors_included() -> None:
    assert shell("echo one; echo two >&2").output(60) == "one\ntwo\n"


@pytest.mark.parametrize(
    ("script", "how"), [("exit 3", "exit status 3"), ("kill -SEGV $$", "ended by SIGSEGV"), ("true", "exit status 0")]
)
def test_how_it_ended_by_itself_is_told(script: str, how: str) -> None:
    assert shell(script, subprocess.DEVNULL).end(60) == how


def test_one_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    child = shell(f"sleep 600 & echo $! > {tmp_path}/pid; wait")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    assert child.output(0.05) is None
    assert child.end() == "ended by SIGKILL"
    pid = (tmp_path / "pid").read_text().strip()
    until(lambda: not Path(f"/proc/{pid}/fd/0").exists())
