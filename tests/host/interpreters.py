"""The Pythons that the engine host is tried under: those of the boards, where they are found, and our own."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

SETTING = "JETSEL_HOST_PYTHONS"
BOARDS = ("python3.6", "python3.8", "python3.10", "python3.12")  # JetPack 4.6, 5, 6 and 7


def asked() -> list[str]:
    """The interpreters that the setting names, else those of the boards by name."""
    return [name for name in os.environ.get(SETTING, "").split(os.pathsep) if name] or list(BOARDS)


def found() -> list[str]:
    """Those of them that the host can be tried under, and always our own."""
    return [resolved(name) for name in asked() if why_not(name) is None] + [sys.executable]


def short_name(interpreter: str) -> str:
    """The name of the environment that the interpreter stands in, or its own."""
    path = Path(interpreter)
    return path.parents[1].name if path.name.startswith("python") and len(path.parts) > 2 else interpreter


def is_named(interpreter: str) -> bool:
    """Whether somebody asked for this one, so that it has to be there."""
    return interpreter not in BOARDS


def resolved(interpreter: str) -> str:
    """The path of it; what a link stands for is left alone, since it says to which environment it belongs."""
    return str(Path(shutil.which(interpreter) or interpreter).absolute())


@functools.cache
def why_not(interpreter: str) -> str | None:
    """Why the host cannot be tried under this interpreter, None where it can."""
    repair = f"run make test-host, or name interpreters in {SETTING}, with colons between them"
    if shutil.which(interpreter) is None:
        return f"there is no {interpreter}: {repair}"
    command = [interpreter, "-I", "-c", "import numpy, onnxruntime"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        said = next((line for line in reversed(lines) if "Error" in line), lines[0])
        return f"{interpreter} does not import numpy and onnxruntime ({said}): {repair}"
    return None


@functools.cache
def version(interpreter: str) -> str:
    """The version of it, such as 3.6.15."""
    command = [interpreter, "-I", "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
