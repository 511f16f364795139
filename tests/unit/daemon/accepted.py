"""Connections that were accepted, and a clock, for what watches over them."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from pathlib import Path


class Clock:
    """Seconds that only a test lets pass."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Rig:
    """Accepted connections of this process, as libzmq's would be."""

    def __init__(self, stack: ExitStack, where: Path) -> None:
        self._stack = stack
        self._tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))
        self._ipc = stack.enter_context(socket.socket(socket.AF_UNIX))
        self._ipc.bind(str(where))
        self._ipc.listen(256)

    def connect(self, over: str = "tcp", host: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
        """Return our end, and the one that is watched."""
        if over == "tcp":
            ours = socket.create_connection(self._tcp.getsockname(), source_address=(host, 0))
        else:
            ours = socket.socket(socket.AF_UNIX)
            ours.connect(self._ipc.getsockname())
        accepted, _ = (self._tcp if over == "tcp" else self._ipc).accept()
        return self._stack.enter_context(ours), self._stack.enter_context(accepted)


def watched(*accepted: socket.socket) -> dict[int, int | None]:
    """What the kernel tells of libzmq's epoll instance: inodes by descriptor."""
    return {one.fileno(): os.fstat(one.fileno()).st_ino for one in accepted}
