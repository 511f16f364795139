"""A server with a clock of the test's, and peers that write what they like."""

from __future__ import annotations

import select
import socket
from contextlib import ExitStack

from jetsel.config import Server as Limits
from jetsel.daemon.zmtp.entrance import AsksKey
from jetsel.daemon.zmtp.server import Found, Server
from tests.system.raw import greeting, ready
from tests.unit.daemon.clock import Clock

FRAME_BYTES = 200_000
ALL = 10_000


class Rig:
    """A server whose epoll instance the test looks at, and peers that it closes."""

    def __init__(
        self, stack: ExitStack, listening: socket.socket, limits: Limits, asks_key: AsksKey | None = None
    ) -> None:
        self._stack = stack
        self._epoll = stack.enter_context(select.epoll())
        self._family, self._address = listening.family, listening.getsockname()
        self.clock = Clock()
        self.server = Server([listening], self._epoll, FRAME_BYTES, limits, asks_key, self.clock)
        stack.callback(self.server.close)

    def connect(self, data: bytes = b"", host: str | None = None) -> socket.socket:
        """A peer that has written this, and that nobody has let in yet. host: its own address, of 127.0.0.0/8."""
        peer = self._stack.enter_context(socket.socket(self._family))
        if host is not None:
            peer.bind((host, 0))
        peer.connect(self._address)
        peer.sendall(data)
        return peer

    def receive(self) -> list[Found]:
        """One call, as a thread makes it that has slept."""
        self.hear()
        return self.server.receive(ALL, ALL * FRAME_BYTES)

    def hear(self) -> None:
        """Hand on what the epoll instance tells."""
        for descriptor, events in self._epoll.poll(0):
            self.server.hears(descriptor, events)

    def greet(self, count: int) -> list[socket.socket]:
        """So many that may ask."""
        peers = [self.connect(greeting() + ready()) for _ in range(count)]
        self.receive_all()
        return peers

    def receive_all(self) -> int:
        """Call until there is nothing more; return how many messages that gave."""
        count = len(self.receive())
        while self.server.has_more:
            count += len(self.receive())
        return count
