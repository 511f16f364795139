"""System resources of a process: memory returned after loading, open files, an eventfd, and child Pythons."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import sys
from pathlib import Path

M_MMAP_THRESHOLD = -3  # malloc.h


def resident_mb() -> float | None:
    """Return the process's resident memory in megabytes (proc(5), statm), None if /proc does not give it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize() / 1e6


def return_large_blocks() -> None:
    """Make malloc return freed blocks of 1 MB or more to the system at once; messages can be that large.

    By default glibc raises this threshold to the largest freed block and keeps smaller ones, so that memory would stay
    large after a burst of large messages. mallopt(3), M_MMAP_THRESHOLD.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1_000_000)


def freeze_and_trim() -> None:
    """Return freed memory, a fifth of the daemon's, to the system; exclude loaded objects from garbage collection.

    Collections would otherwise scan all loaded objects and delay requests. Objects that a reload replaces are still
    freed by reference counts.
    """
    gc.collect()
    gc.freeze()
    trim_memory()


def trim_memory() -> None:
    """Return freed memory to the system by glibc's malloc_trim(3); other C libraries lack it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


ENOUGH_FILES = 16_384
"""Upper bound of the soft limit, since children inherit it and some scan all descriptors up to it.

systemd's hard limit is 524,288 (systemd.exec(5), LimitNOFILE=).
"""

RESERVED_FILES = 64
"""Descriptors reserved for the daemon itself, which used 30 at most.

A reload opens files, a restarted engine host has pipes, and a connection may be accepted meanwhile.
"""


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one, up to ENOUGH_FILES (getrlimit(2), RLIMIT_NOFILE)."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def file_limit() -> int:
    """Return the soft limit of open files."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


_RUN = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; import runpy; "
    'runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)'
)
"""Does the same as `python -P -m`, which Python 3.10 lacks. `-I` would also hide the user's site packages."""


def python_command(module: str, *words: str) -> list[str]:
    """Return the command that runs a module with these arguments, as `python -m` does.

    The child does not import from its working folder, which may be any folder of the user.
    """
    return [sys.executable, "-c", _RUN, module, *words]


class EventFd:
    """An eventfd(2) that threads wait for together with sockets.

    Each `set` ends one wait for the descriptor, now or later.
    """

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def set(self) -> None:
        """End one wait."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Consume one `set` and write the rest back. With EPOLLET each write wakes one more waiting thread."""
        with contextlib.suppress(BlockingIOError):  # another thread, woken by the same event, was first
            count = os.eventfd_read(self.fd)
            if count > 1:
                os.eventfd_write(self.fd, count - 1)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)
