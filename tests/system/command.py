"""The `jetsel` command as a process."""

import os
import subprocess
import sys

COMMAND = [sys.executable, "-m", "jetsel"]


def jetsel(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command to its end. No daemon of the user's is found, and nothing depends on the terminal's width."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": "/nonexistent", "COLUMNS": "200", **(env or {})}
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
