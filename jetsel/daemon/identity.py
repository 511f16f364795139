"""Who sent a message, as far as its transport vouches for it."""

from __future__ import annotations

import os
from typing import NamedTuple

LOOPBACK = "loopback"  # everybody on tcp without keys: nobody is told from anybody else there
TRUSTED = frozenset({"uid 0", f"uid {os.getuid()}"})  # by name: root and the daemon's own user, who may end it anyway


class Identity(NamedTuple):
    """One client. `name` is what limits and the log count by: "uid 1000", "key NAME", or "loopback".

    credentials: (uid, gid, pid) of an ipc peer as the kernel says, None over tcp. is_admin: whether its key may change
    the daemon. refusal: why it may not even ask any more, None where it may.
    """

    name: str
    credentials: tuple[int, int, int] | None = None
    is_admin: bool = False
    refusal: str | None = None


def of_process(uid: int, gid: int, pid: int) -> Identity:
    """Return who a peer on ipc is."""
    return Identity(f"uid {uid}", (uid, gid, pid))
