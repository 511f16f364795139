"""docs/gateway.md: its programs and commands run as they stand, but for the port."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.system.gateway.gateways import Gateway

TEXT = (Path(__file__).parents[3] / "docs" / "gateway.md").read_text("utf-8")


def test_its_program_and_its_commands_run(gateway: Gateway, tmp_path: Path, jpeg: bytes) -> None:
    (tmp_path / "cat.jpg").write_bytes(jpeg)
    place = f"127.0.0.1:{gateway.port}"
    (program,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    commands = [["sh", "-ec", line + " --fail -sS"] for line in re.findall(r"^curl .*$", TEXT, re.MULTILINE)]
    assert len(commands) == 4
    for command in [[sys.executable, "-c", program], *commands]:
        command[-1] = command[-1].replace("127.0.0.1:8000", place)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout
