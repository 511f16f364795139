"""Who sent a message: the user that the kernel names at the other end of its connection (unix(7), SO_PEERCRED)."""

from __future__ import annotations

import os
import socket
import struct
from typing import NamedTuple

TRUSTED = frozenset({"uid 0", f"uid {os.getuid()}"})  # by name: root and the daemon's own user, who may end it anyway
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class Identity(NamedTuple):
    """One user, by the numbers of the user and its group."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        """What limits and the log count by."""
        return f"uid {self.uid}"


def sender_of(peer: socket.socket) -> Identity:
    """Return who is at the other end of a unix socket. Raises OSError."""
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Identity(*_CREDENTIALS.unpack(raw)[1:])
