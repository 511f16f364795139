"""What a process has started that still runs, as Linux tells (proc(5), /proc/PID/task/TID/children)."""

from __future__ import annotations

import contextlib
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """The processes that one of its threads has started."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended
            found += map(int, children.read_text().split())
    return found


def family_of(pid: int) -> list[int]:
    """Itself and all its descendants."""
    family = [pid]
    for parent in family:
        family += children_of(parent)
    return family


def children_with(pid: int, word: str) -> list[int]:
    """Those of its children whose command line has this in it."""
    found: list[int] = []
    for child in children_of(pid):
        with contextlib.suppress(OSError):  # it has ended
            if word.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found
