"""Small programs that stand where an interpreter should, and behave as some of them do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VERSION = "printf 3.8.10"  # what a Python prints when it is asked for its version


def program(path: Path, probed: str, *, version: str = VERSION, loose: str = "exit 1") -> str:
    """Write an executable: what it runs when it is probed, asked for its version, and probed without -I."""
    path.write_text(f'#!/bin/sh\ncase "$1" in\n-I) {probed};;\n-E) {version};;\n*) {loose};;\nesac\n')
    path.chmod(0o755)
    return str(path)


def says(python: str, modules: dict[str, str | None], /, **others: Any) -> str:
    """The command that prints a probe; a module whose version is None does not import."""
    found = {
        name: {"version": version, "path": f"/site/{name}/__init__.py", "error": None}
        if version
        else {"version": None, "path": None, "error": f"ModuleNotFoundError: No module named '{name}'"}
        for name, version in modules.items()
    }
    usable = all(modules.values())
    plain = {"python": python, "modules": found, "usable": usable, "reason": None, "gpu": None, "new": 1, **others}
    return f"echo '{json.dumps(plain).replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'"
