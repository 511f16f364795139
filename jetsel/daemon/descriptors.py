"""How many files the process may open: as many as connections need, and some that are kept for its own use."""

from __future__ import annotations

import resource

ENOUGH = 16_384
"""Where the hard limit is higher, the soft one is set to this: children inherit it, and some walk all that they may
open. systemd's hard limit is 524,288 (systemd.exec(5), LimitNOFILE=)."""

RESERVE = 64
"""Kept free for what the daemon opens itself: a reload reads files, an engine host is started again with some pipes, a
connection that is accepted in between. The most seen at once was 30."""


def raise_limit() -> None:
    """Set the soft limit to the hard one, as far as that is sane (getrlimit(2), RLIMIT_NOFILE)."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def limit() -> int:
    """How many files the process may have open, once `raise_limit` was called."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
