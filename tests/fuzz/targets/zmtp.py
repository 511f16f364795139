"""What a peer writes to a socket that needs no key: its greeting, READY, frames and commands, in pieces of any size."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.connection import Connection
from jetsel.daemon.zmtp.mechanism import Null
from tests.fuzz.reading import FRAME_BYTES, PIECES, read
from tests.system.raw import frame, greeting, message, ready

MAX_BYTES = 4096
WORDS = (greeting()[:12], b"\x05READY", b"\x0bSocket-Type", b"\x08Identity", b"\x06DEALER", b"\x04PING", b"\x04PONG")
_ME = Identity("uid 1", (1, 1, 1))

__all__ = ["MAX_BYTES", "WORDS", "run", "seeds"]


def run(data: bytes) -> None:
    """What comes is within the limits, the same however it is cut, and nothing is held once nothing is missing.

    The first byte says how it is cut.
    """
    if not data:
        return
    whole = _read(data[1:], PIECES[-1])
    assert _read(data[1:], PIECES[data[0] % len(PIECES)]) == whole


def _read(data: bytes, piece: int) -> tuple[list[list[bytes]], bool, list[bytes]]:
    """Return the messages, whether the peer was refused, and what the protocol answers."""
    peer, ours = socket.socketpair()
    with peer, ours:
        ours.setblocking(False)
        peer.sendall(data)
        connection = Connection(ours, 1, Null(_ME), _ME.name, FRAME_BYTES, 0.0)
        return *read(connection, piece), connection.to_send


def seeds() -> Iterator[bytes]:
    hello = greeting() + ready()
    yield b"\0" + hello
    yield b"\1" + greeting() + ready(Identity=b"camera-1", X_More=b"1")
    yield b"\2" + hello + message(b"{}", b"image") + message(b"", b"{}") + b"\x04\x09\x04PING\0\0ab"
    yield b"\3" + hello + frame(bytes(1500)) + frame(b"", announced=9000)
    yield b"\4" + hello + b"\x01\x00" * 70
    yield b"\0" + greeting(b"CURVE")
    yield b"\1" + hello + frame(bytes(300), announced=1800)
