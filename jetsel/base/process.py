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
    """Make malloc return freed blocks of 1 MB or more to the system at once; messages with images are that large.

    By default glibc raises this threshold to the largest freed block and keeps smaller ones, so that memory would stay
    large after a burst of large messages (mallopt(3), M_MMAP_THRESHOLD).
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1_000_000)


def freeze_and_trim() -> None:
    """Collect garbage, exclude all live objects from later collections, and return freed memory to the system.

    Call it after models are loaded: later collections then do not scan their objects and delay requests, and the
    daemon's resident memory falls by a fifth. Objects that a reload replaces are still freed by reference counts.
    """
    gc.collect()
    gc.freeze()
    trim_memory()


def trim_memory() -> None:
    """Return freed memory to the system by glibc's malloc_trim(3); other C libraries lack it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


# Children inherit the soft limit, and some scan all descriptors up to it: systemd's hard limit is 524,288
# (systemd.exec(5), LimitNOFILE=).
MAX_OPEN_FILES = 16_384

# Descriptors that the daemon needs besides its clients' connections, as for a reload's files and an engine host's
# pipes. It used 30 at most.
RESERVED_FILES = 64


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one, up to MAX_OPEN_FILES (getrlimit(2), RLIMIT_NOFILE)."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def file_limit() -> int:
    """Return the number of files and sockets that this process may have open (RLIMIT_NOFILE, soft)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


_RUN = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; import runpy; "
    'runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)'
)
"""Does the same as `python -P -m`, which Python 3.10 lacks. `-I` would also hide the user's site packages."""


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with these arguments, as `python -m` does.

    The child does not import from its working folder, since that may be any folder of the user.
    """
    return [sys.executable, "-c", _RUN, module, *arguments]


class EventFd:
    """An event with a descriptor (eventfd(2)), so that threads can wait for it and for sockets in one poll or epoll."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def set(self) -> None:
        """Wake one thread that waits for `fd`, or the next one that does."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Consume one `set` after a wait; write the others back, which wakes one more thread (epoll(7), EPOLLET)."""
        with contextlib.suppress(BlockingIOError):  # another thread, woken by the same event, was first
            count = os.eventfd_read(self.fd)
            if count > 1:
                os.eventfd_write(self.fd, count - 1)

    def close(self) -> None:
        """Close `fd`; no thread may wait for it any more."""
        os.close(self.fd)
