"""A host that is killed, and all that it started with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.engines import EngineFailedError
from jetsel.engines.hosting.process import HostProcess, HostStart
from tests.waiting import until


def test_what_it_started_is_killed_with_it(tmp_path: Path) -> None:
    script, file = tmp_path / "script", tmp_path / "pid"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {file}\nwait\n")
    script.chmod(0o755)

    def stopped() -> str | None:
        return "stopped" if file.exists() and file.read_text() else None

    with pytest.raises(EngineFailedError, match=r"stopped \(ended by SIGKILL\)"):
        HostProcess(HostStart(str(script), "tensorrt"), stopped)
    pid = file.read_text().strip()
    until(lambda: not Path(f"/proc/{pid}/fd/0").exists())
