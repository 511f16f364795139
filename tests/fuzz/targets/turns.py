"""Several peers at the daemon's own server: what they write, when each hangs up, and how time passes, in any order."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack

from jetsel.config import Server as Limits
from jetsel.daemon.zmtp.server import PER_TURN, TURNS, Server
from tests.fuzz.targets.zmtp import WORDS
from tests.system.raw import frame, greeting, message, ready

MAX_BYTES = 4096
FRAME_BYTES = 2000
PEERS = 4
MOST_TURNS = 50  # until the last is heard, whatever the others do
HELLO = greeting() + ready()
QUESTION = message(b"the last")

WRITE, GREET, HANG_UP, RECEIVE, REPLY, WAIT = range(6)
"""Steps: two bytes, the kind and the peer; WRITE has a third, how many of the bytes that follow it writes."""

__all__ = ["MAX_BYTES", "WORDS", "run", "seeds"]


class Rig:
    """A server, and peers that come and go."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._epoll = stack.enter_context(select.epoll())
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(f"\0jetsel-fuzz-{os.getpid()}")  # of no file system (unix(7), abstract)
        listening.listen(128)
        self._address = listening.getsockname()
        self.now_s = 0.0
        limits = Limits(peer_timeout_s=8.0, peers_mb=0.003)
        self.server = Server([listening], self._epoll, FRAME_BYTES, limits, None, lambda: self.now_s)
        stack.callback(self.server.close)
        self.peers = [self.connect() for _ in range(PEERS)]
        self.tokens = [0]

    def connect(self) -> socket.socket:
        peer = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        peer.setblocking(False)
        with contextlib.suppress(BlockingIOError):  # many have come, and nobody was let in meanwhile
            peer.connect(self._address)
        return peer

    def write(self, peer: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError):  # it was hung up on, or nobody reads it
            peer.send(data)

    def receive(self) -> list[bytes]:
        """One call; the messages that it gave."""
        for descriptor, events in self._epoll.poll(0):
            self.server.hears(descriptor, events)
        found = self.server.receive(8, FRAME_BYTES)
        assert len(found) <= min(8, TURNS * PER_TURN)
        assert 0 <= self.server.held_bytes <= 3000, "peers_mb"
        self.tokens += [token for token, _, _ in found]
        return [b"|".join(parts) for _, _, parts in found]


def run(data: bytes) -> None:
    """Whatever some do, another is heard; and when all have gone, nothing of them is left."""
    with ExitStack() as stack:
        rig = Rig(stack)
        _act(rig, data)
        while rig.receive() or rig.server.has_more:
            pass  # so that there is room for one more
        last = rig.connect()
        rig.write(last, HELLO + QUESTION)
        heard = (b"the last" in rig.receive() for _ in range(MOST_TURNS))
        assert any(heard), "one was not heard for the others"
        for peer in (*rig.peers, last):
            peer.close()
        rig.receive()
        for _ in range(MAX_BYTES):  # a message has two bytes at least
            if not rig.server.has_more:
                break
            rig.receive()
        assert not rig.server.clients
        assert not rig.server.held_bytes
        assert not rig.server.promised_bytes
        assert not rig.server.has_more
        assert not rig.server.has_late


def _act(rig: Rig, data: bytes) -> None:
    at = 0
    while at + 2 <= len(data):
        kind, index = data[at] % 6, data[at + 1] % PEERS
        at += 2
        if kind == WRITE:
            count = data[at] if at < len(data) else 0
            rig.write(rig.peers[index], data[at + 1 : at + 1 + count])
            at += 1 + count
        elif kind == GREET:
            rig.write(rig.peers[index], HELLO)
        elif kind == HANG_UP:
            rig.peers[index].close()
            rig.peers[index] = rig.connect()
        elif kind == RECEIVE:
            rig.receive()
        elif kind == REPLY:
            rig.server.send(rig.tokens[index % len(rig.tokens)], (b"answer",))
        else:
            rig.now_s += data[at - 1] / 32


def seeds() -> Iterator[bytes]:
    greet = bytes(value for peer in range(PEERS) for value in (GREET, peer)) + bytes((RECEIVE, 0))
    yield greet + b"".join(_write(peer, message(b"{}") * 5) for peer in range(PEERS)) + bytes((RECEIVE, 0, REPLY, 1))
    yield greet + _write(0, b"\x04\x00" * 100) * 12 + _write(1, b"\x01\x01x" + b"\x04\x00" * 50) + bytes((RECEIVE, 0))
    yield greet + _write(0, b"\x04\x09\x04PING\0\0ab" * 20) + bytes((HANG_UP, 0, RECEIVE, 0))
    yield greet + _write(2, frame(bytes(100), announced=1900)) + bytes((RECEIVE, 0, WAIT, 255, WAIT, 255, RECEIVE, 0))
    yield greet + b"".join(_write(peer, frame(bytes(150), announced=1900)) for peer in range(PEERS)) * 5
    begun = b"".join(_write(peer, frame(bytes(90), announced=1900)) for peer in range(PEERS)) + bytes((RECEIVE, 0))
    more = b"".join(_write(peer, bytes(200)) for peer in range(PEERS)) + bytes((RECEIVE, 0))
    yield greet + begun + more * 3 + bytes((WAIT, 0, WAIT, 255, RECEIVE, 0, HANG_UP, 1)) + more * 8


def _write(peer: int, data: bytes) -> bytes:
    return bytes((WRITE, peer, len(data))) + data
