"""Have on the disk what a loss of power must not take back."""

from __future__ import annotations

import os
from pathlib import Path


def flush(path: Path) -> None:
    """Have a file's content, or a folder's names, on the disk (fsync(2): a folder's names need one of their own).

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
