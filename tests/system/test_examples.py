"""The examples of the repository that need no camera and no compiler, as somebody runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_two_tasks_share_their_models_and_each_is_answered_or_refused_by_what_it_requires() -> None:
    command = [sys.executable, EXAMPLES / "two_tasks.py", "--cheap", "0.7", "--matters", "0.8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "the weights of 5 of its 5 models" in done.stdout
    cheap = [line for line in done.stdout.splitlines() if "mistakes are cheap" in line]
    matters = [line for line in done.stdout.splitlines() if "mistakes are expensive" in line]
    assert len(cheap) == len(matters) == 6
    assert all("0.7: cascade-averaged comes nearest" in line for line in cheap), "the starter family has less"
    assert all("meet the requirements" in line and "refused" not in line for line in matters)


@pytest.mark.slow
def test_a_fleet_is_planned_by_its_limits_and_traffic_and_a_bad_model_is_taken_back(tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLES / "fleet" / "run.py", "--report", tmp_path / "fleet.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = {part.splitlines()[0]: part for part in done.stdout.split("\n# ")[1:]}
    first = next(part for head, part in parts.items() if head.startswith("One plan for each"))
    models = {line.split()[0]: line for line in first.splitlines() if " change " in line}
    assert models.keys() == {"small", "middle", "large"}
    assert "storage (" in models["small"]
    chosen = {device: line.partition("kinds: ")[2].split("  ")[0].split() for device, line in models.items()}
    assert len(chosen["large"]) > len(chosen["small"])
    followed = [part for head, part in parts.items() if "adapts to this traffic" in head]
    middle = [[line for line in part.splitlines() if line.startswith("middle: ") and "-" in line] for part in followed]
    assert len(middle) == 2
    assert all(middle), "what the middle device holds follows its traffic"
    bad = next(part for head, part in parts.items() if "swapped labels" in head)
    assert "rolled-back: family kinds" in bad
    assert "reason to stop: small" in bad
    assert (tmp_path / "fleet.html").stat().st_size > 10_000
