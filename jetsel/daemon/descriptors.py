"""The process's file descriptors: how many it may open, how many are open, and how many are kept for its own use."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

ENOUGH = 16_384
"""Where the hard limit is higher, the soft one is raised to this: children inherit it, and some walk all that they may
open. systemd's hard limit is 524,288 (systemd.exec(5), LimitNOFILE=)."""

RESERVE = 64
"""Kept free for what the daemon opens itself: a reload reads files, an engine host is started again with some pipes, a
connection that is accepted in between. The most seen at once was 30."""


def fill_standard() -> None:
    """Open /dev/null as each of 0 to 2 that was closed before the start, before a file of ours gets such a number.

    What a library prints would go into that file. Raises OSError where there is no /dev/null.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest that is free (open(2))
        os.set_inheritable(number, True)
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # for as long as the process runs


def raise_limit() -> None:
    """Raise the soft limit as far as it is sane (getrlimit(2), RLIMIT_NOFILE)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def limit() -> int:
    """How many descriptors the process may have open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


def free() -> int:
    """How many more descriptors may be opened before only the reserve is left; below 0 where that is in use."""
    return limit() - sum(1 for _ in Path("/proc/self/fd").iterdir()) - RESERVE
