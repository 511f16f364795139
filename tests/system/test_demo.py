"""`jetsel demo` and the examples that need no camera and no compiler run to their end, and leave nothing behind."""

import os
import re
import signal
import subprocess
import sys
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
    for part in ("a cat", "a cup of coffee", "cascade", "chain", "of 2, ", "why", "has stopped"):
        assert part in done.stdout
    done = jetsel("demo", "--policy", "best", env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 1
    assert "no policy 'best'" in done.stderr
    assert left_behind(tmp_path) == ([], [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_the_demo_that_is_told_to_end_leaves_nothing(tmp_path: Path, number: int) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen([*COMMAND, "demo"], stdout=said, stderr=said, env=environment)
    until(lambda: any(path.is_socket() for path in tmp_path.glob("jetsel-*/jetsel.sock")))  # its daemon is there
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert "Traceback" not in (tmp_path / "said").read_text()
    assert left_behind(tmp_path) == ([tmp_path / "said"], [])


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_two_tasks_share_their_models_and_each_is_answered_or_refused_by_what_it_requires() -> None:
    command = [sys.executable, EXAMPLES / "two_tasks.py", "--cheap", "0.7", "--matters", "0.8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "the weights of 7 of its 7 models" in done.stdout
    cheap = [line for line in done.stdout.splitlines() if "mistakes are cheap" in line]
    matters = [line for line in done.stdout.splitlines() if "mistakes are expensive" in line]
    assert len(cheap) == len(matters) == 6
    assert all(re.search(r"0\.7: chain:\d+ comes nearest", line) for line in cheap), "the starter family has less"
    assert all("meet the requirements" in line and "refused" not in line for line in matters)


@pytest.mark.slow
def test_heads_for_the_night_are_listed_as_not_calibrated_and_answer_once_a_calibration_finds_that_they_pay() -> None:
    command = [sys.executable, EXAMPLES / "day_and_night.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.split("$ jetsel models list\n")[1:]
    new = "not calibrated: xs-dark, s-dark, s-night-dark, m-dark, m-night-dark, l-dark, xl-dark: "
    assert before.startswith(new), "in the list"
    assert f"\n  {new}" in before, "in the status"
    assert "calibration: number 1" in before
    assert "-dark (" not in before, "nothing was answered by them"
    assert "not calibrated" not in after
    assert "calibration: number 2" in after
    (night,) = (line for line in after.splitlines() if line.startswith("by night answer: "))
    times = {model: int(number) for model, number in re.findall(r"([a-z-]+) \((\d+)\)", night)}
    assert sum(times.values()) == 128
    assert sum(number for model, number in times.items() if model.endswith("-dark")) > 64


@pytest.mark.slow
def test_a_fleet_is_planned_by_its_limits_and_traffic_and_a_bad_model_is_taken_back(tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLES / "fleet" / "run.py", "--report", tmp_path / "fleet.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = {part.splitlines()[0]: part for part in done.stdout.split("\n# ")[1:]}
    first = next(part for head, part in parts.items() if head.startswith("One plan for each"))
    assert {line.split()[0] for line in first.splitlines() if " change " in line} == {"small", "middle", "large"}
    bad = next(part for head, part in parts.items() if "swapped labels" in head)
    assert "rolled-back: family kinds" in bad
    assert "reason to stop: small" in bad
    assert (tmp_path / "fleet.html").stat().st_size > 10_000
