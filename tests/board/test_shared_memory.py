"""Whether inputs reach the GPU from the shared memory itself, or by one copy to page-locked memory: it is reported."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jetsel.engines.hosting.memory import Memory
from jetsel.engines.hosting.process import HOST
from tests.board.report import Report

WITHOUT = {"5.3", "6.2"}  # Nano and TX2: there CUDA registers no host memory
SCRIPT = Path(__file__).with_name("registering.py")


def test_the_shared_memory_is_registered_where_the_board_can(
    python: str, about: Mapping[str, Any], report: Report
) -> None:
    memory = Memory()
    try:
        command = [python, "-I", str(SCRIPT), str(HOST), str(memory.fd), str(memory.size)]
        done = subprocess.run(command, pass_fds=[memory.fd], capture_output=True, text=True, timeout=300, check=False)
    finally:
        memory.close()
    assert done.returncode == 0, done.stderr
    in_place = json.loads(done.stdout.splitlines()[-1])["in_place"]
    assert in_place in (True, False)
    report.facts["shared memory"] = "registered: read in place" if in_place else "not registered: one copy for each run"
    if about["gpu"]["compute_capability"] in WITHOUT:
        assert not in_place
