"""Connections that were accepted, for what watches over them."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack


class Rig:
    """Accepted connections of this process, as libzmq's would be."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))

    def connect(self, host: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
        """Return our end, and the one that is watched."""
        ours = socket.create_connection(self._listening.getsockname(), source_address=(host, 0))
        accepted, _ = self._listening.accept()
        return self._stack.enter_context(ours), self._stack.enter_context(accepted)


def watched(*accepted: socket.socket) -> dict[int, int | None]:
    """What the kernel tells of libzmq's epoll instance: inodes by descriptor."""
    return {one.fileno(): os.fstat(one.fileno()).st_ino for one in accepted}
