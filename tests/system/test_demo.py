"""`jetsel demo`: it runs to its end, and leaves nothing behind however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.system.command import COMMAND, jetsel
from tests.waiting import until


@pytest.mark.slow
def test_what_the_demo_showed_can_be_served(tmp_path: Path) -> None:
    done = jetsel("demo", "--models", str(tmp_path / "models"), env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0
    assert "family" in done.stdout
    shown = "the starter family is used" not in done.stdout  # it could be fetched
    assert ("models pull efficientnet-lite, then jetsel serve" in done.stdout) is shown
    assert "note:" not in done.stdout  # about the folder, which the demo's daemon reads


def left_behind(folder: Path) -> tuple[list[Path], list[str]]:
    """What lies in the folder, and the processes whose command line names it."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        if str(folder) in command:
            commands.append(command)
    return list(folder.iterdir()), commands


def test_the_demo_runs_to_its_end_and_leaves_nothing(tmp_path: Path) -> None:
    done = jetsel("demo", "--policy", "cascade", env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("a cat", "a cup of coffee", "cascade", "chain", "right on 2 of 2", "why", "has stopped"):
        assert part in done.stdout
    done = jetsel("demo", "--policy", "best", env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 1
    assert "no policy 'best'" in done.stderr
    assert left_behind(tmp_path) == ([], [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_demo_that_is_told_to_end_leaves_nothing(tmp_path: Path, number: int) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen([*COMMAND, "demo"], stdout=said, stderr=said, env=environment)
    until(lambda: any(path.is_socket() for path in tmp_path.glob("jetsel-*/jetsel.sock")))  # its daemon is there
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert "Traceback" not in (tmp_path / "said").read_text()
    assert left_behind(tmp_path) == ([tmp_path / "said"], [])
