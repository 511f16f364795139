"""The campaign of many devices, with few: through an S3-compatible server and everything that breaks."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_few_devices_survive_the_campaign() -> None:
    command = [sys.executable, "-m", "tests.campaigns.fleet", "--devices", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "WRONG" not in done.stdout
    assert "'rolled-back': 4" in done.stdout
