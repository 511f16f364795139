"""What a process takes from the system: memory, given back after loading; open files; an eventfd; a child Python."""

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
    """The process's resident memory in megabytes (proc(5), statm), or None if /proc does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize() / 1e6


def return_large_blocks() -> None:
    """Have every freed block of a megabyte or more go back to the system at once: messages can be that large.

    Left alone, glibc raises this threshold to the largest block it has freed, and keeps what lies below it; a flood of
    large messages would stay in the process's memory for good. mallopt(3), M_MMAP_THRESHOLD.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1_000_000)


def settle() -> None:
    """After loading: what was freed goes back to the system, and what stays is left out of every later collection.

    What a reload replaces is freed by counting its references, and a look at all there is would hold up the requests
    that are under way: so what was left out stays out. Freed memory was a fifth of the daemon, which malloc would keep.
    """
    gc.collect()
    gc.freeze()
    trim()


def trim() -> None:
    """Give what was freed back to the system: malloc_trim(3) is glibc's; another C library goes without."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


ENOUGH_FILES = 16_384
"""If the hard limit is higher, the soft one is set to this: children inherit it, and some walk all that they may
open. systemd's hard limit is 524,288 (systemd.exec(5), LimitNOFILE=)."""

RESERVED_FILES = 64
"""Kept free for what the daemon opens itself: a reload reads files, an engine host is started again with some pipes, a
connection that is accepted in between. The most seen at once was 30."""


def raise_file_limit() -> None:
    """Set the soft file_limit to the hard one, as far as that is sane (getrlimit(2), RLIMIT_NOFILE)."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def file_limit() -> int:
    """How many files the process may have open, once `raise_file_limit` was called."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


_RUN = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; import runpy; "
    'runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)'
)
"""Does what `python -P -m` does, which Python 3.10 lacks. `-I` would also hide the packages of the user's own site."""


def python_command(module: str, *words: str) -> list[str]:
    """Return the command that runs a module, as `python -m` does, with these arguments.

    The child imports nothing from the folder that it is started in, which is the user's.
    """
    return [sys.executable, "-c", _RUN, module, *words]


class EventFd:
    """An eventfd(2) that threads wait for together with sockets.

    Each `set` ends one wait for its descriptor, whether that has begun or not.
    """

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def set(self) -> None:
        """End one wait."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Count one wait that has ended; the others are set again: a waiting thread sees each once (EPOLLET)."""
        with contextlib.suppress(BlockingIOError):  # another thread, awake by the same event, was first
            count = os.eventfd_read(self.fd)
            if count > 1:
                os.eventfd_write(self.fd, count - 1)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)
