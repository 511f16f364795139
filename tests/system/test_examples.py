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
    assert "own shares 5 of its 5 models" in done.stdout
    cheap = [line for line in done.stdout.splitlines() if "mistakes are cheap" in line]
    matters = [line for line in done.stdout.splitlines() if "it matters" in line]
    assert len(cheap) == len(matters) == 6
    assert all("0.7: cascade-averaged comes nearest" in line for line in cheap), "the starter family has less"
    assert all("all that was asked for" in line and "refused" not in line for line in matters)
