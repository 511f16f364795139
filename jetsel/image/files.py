"""Read an image's file no further than it is accepted."""

from __future__ import annotations

from pathlib import Path

from jetsel.image.limits import Limits


def read_file(path: Path, limits: Limits) -> bytes:
    """Return the file's bytes, or so many that `decode` refuses it as too large; raises OSError."""
    with path.open("rb") as file:
        return file.read(limits.max_bytes + 1)
