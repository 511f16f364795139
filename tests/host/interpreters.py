"""The Pythons that the engine host is tried under: those of the boards, where they are found, and our own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SETTING = "JETSEL_HOST_PYTHONS"
BOARDS = ("python3.6", "python3.8", "python3.10", "python3.12")  # JetPack 4.6, 5, 6 and 7


def found() -> list[str]:
    """Those that the setting names, else those of the boards that can serve; and always our own.

    Raises RuntimeError where one that is named cannot.
    """
    named = [name for name in os.environ.get(SETTING, "").split(os.pathsep) if name]
    if broken := [name for name in named if not _serves(name)]:
        raise RuntimeError(f"{SETTING}: {', '.join(broken)}: no Python with numpy and onnxruntime; run make test-host")
    usable = named or [name for name in BOARDS if _serves(name)]
    return [str(Path(shutil.which(name) or name).absolute()) for name in usable] + [sys.executable]


def short_name(interpreter: str) -> str:
    """The name of the environment that the interpreter stands in, or its own."""
    path = Path(interpreter)
    return path.parents[1].name if path.name.startswith("python") and len(path.parts) > 2 else interpreter


def version(interpreter: str) -> str:
    """The version of it, such as 3.6.15."""
    command = [interpreter, "-I", "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _serves(interpreter: str) -> bool:
    if shutil.which(interpreter) is None:
        return False
    command = [interpreter, "-I", "-c", "import numpy, onnxruntime"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
