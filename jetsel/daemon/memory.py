"""The process's memory: how much it holds, and giving back what loading left behind."""

from __future__ import annotations

import contextlib
import ctypes
import resource
from pathlib import Path


def resident_mb() -> float | None:
    """The process's resident memory in megabytes (proc(5), statm), or None where /proc does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize() / 1e6


def give_back_freed() -> None:
    """Return to the system what loading the models has freed: a fifth of the daemon, which malloc would keep.

    malloc_trim(3) is glibc's; another C library goes without.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
