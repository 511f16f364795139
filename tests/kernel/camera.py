"""What `jetsel watch` sees of a V4L2 camera: vivid, Linux's own virtual one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

OUT = Path("/run/watch.out")
NOBODY = "ipc:///run/nobody.sock"  # what frames are asked about is tested elsewhere


def camera() -> dict[str, Any]:
    """Return the events of a watcher that was interrupted once it had frames."""
    command = [sys.executable, "-m", "jetsel", "watch", "0", "--endpoint", NOBODY, "--stall-s", "60"]
    with OUT.open("wb") as out, subprocess.Popen(command, stdout=out) as watcher:
        while not any(event["event"] == "source" for event in events()) and watcher.poll() is None:
            pass
        watcher.send_signal(signal.SIGINT)
    return {"status": watcher.returncode, "events": events()}


def events() -> list[dict[str, Any]]:
    """All that was told so far, by whole lines."""
    return [json.loads(line) for line in OUT.read_text().splitlines(keepends=True) if line.endswith("\n")]
