"""One connection as the server reads it, and the peer at its other end."""

from __future__ import annotations

import socket

from jetsel.daemon.zmtp.connection import Connection
from jetsel.daemon.zmtp.mechanism import Mechanism

FRAME_BYTES = 150_000


class Pair:
    """Both ends."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.peer, ours = socket.socketpair()
        ours.setblocking(False)
        self.connection = Connection(ours, 1, mechanism, mechanism.identity.name, FRAME_BYTES, 0.0)
        self._scratch = memoryview(bytearray(4096))

    def tell(self, data: bytes) -> list[list[bytes]]:
        """Send this; return the messages that have come by then."""
        found: list[list[bytes]] = []
        for at in range(0, len(data), 65_536):  # what the kernel takes while nobody reads
            self.peer.sendall(data[at : at + 65_536])
            self.connection.may_have_more(has_left=False)
            while True:
                while (taken := self.connection.take()) is not None or self.connection.has_unread:
                    found += [] if taken is None else [[bytes(part) for part in taken]]
                if self.connection.fill(self._scratch) is None:
                    break
        return found

    def close(self) -> None:
        self.peer.close()
        self.connection.peer.close()
