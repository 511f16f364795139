"""Small reads of the kernel's files: a text or a number, None where there is none now."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NUMBER = re.compile(r"-?\d+")


def read(path: Path | str) -> str:
    """Return the file's text without blanks and zero bytes at its ends; raises OSError."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # hundreds are read each second: the short way
        return file.read().decode(errors="replace").strip("\0 \n\t")


def read_text(path: Path | str) -> str | None:
    """Return the file's text as `read` does, None where it is empty or cannot be read."""
    try:
        return read(path) or None
    except OSError:  # a sensor may also vanish between two reads
        return None


def read_number(path: Path | str) -> int | None:
    """Return the file's whole number, None where there is none."""
    text = read_text(path)
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def names(folder: Path | str) -> list[str]:
    """Return what the folder holds, sorted; nothing where it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  # names are enough
    except OSError:
        return []
