"""What a peer writes to a socket that needs no key: its greeting, READY, frames and commands, in pieces of any size."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.connection import MOST_PARTS, Connection
from jetsel.daemon.zmtp.wire import MAX_COMMAND_BYTES, ProtocolError, message
from tests.system.raw import frame, greeting, ready

MAX_BYTES = 4096
FRAME_BYTES = 2000
PIECES = (1, 7, 64, 300, 4096)  # bytes that are read at a time, by the first byte
WORDS = (greeting()[:12], b"\x05READY", b"\x0bSocket-Type", b"\x08Identity", b"\x06DEALER", b"\x04PING", b"\x04PONG")
_ME = Identity("uid 1", (1, 1, 1))

__all__ = ["MAX_BYTES", "WORDS", "run", "seeds"]


def run(data: bytes) -> None:
    """What comes is within the limits, the same however it is cut, and nothing is held once nothing is missing."""
    if not data:
        return
    whole = _read(data[1:], PIECES[-1])
    assert _read(data[1:], PIECES[data[0] % len(PIECES)]) == whole


def _read(data: bytes, piece: int) -> tuple[list[list[bytes]], list[bytes], bool]:
    """Return the messages, what the protocol answers, and whether the peer was refused."""
    peer, ours = socket.socketpair()
    with peer, ours:
        ours.setblocking(False)
        peer.sendall(data)
        connection = Connection(ours, 1, _ME, FRAME_BYTES, 0.0)
        scratch = memoryview(bytearray(piece))
        found, is_refused = [], False
        try:
            while True:
                while (parts := connection.take()) is not None:
                    assert 1 <= len(parts) <= MOST_PARTS
                    assert sum(map(len, parts)) <= 2 * FRAME_BYTES
                    found.append([bytes(part) for part in parts])
                assert 0 <= connection.held_bytes <= 2 * FRAME_BYTES
                assert connection.held_bytes == 0 or not connection.is_between
                if not connection.fill(scratch):
                    break
        except ProtocolError:
            is_refused = True
        said = connection.to_send
    assert all(len(each) <= MAX_COMMAND_BYTES for each in said)
    assert not found or connection.is_open
    return found, said, is_refused


def seeds() -> Iterator[bytes]:
    hello = greeting() + ready()
    yield b"\0" + hello
    yield b"\1" + greeting() + ready(Identity=b"camera-1", X_More=b"1")
    yield b"\2" + hello + message((b"{}", b"image")) + message((b"", b"{}")) + b"\x04\x09\x04PING\0\0ab"
    yield b"\3" + hello + frame(bytes(1500)) + frame(b"", announced=9000)
    yield b"\4" + hello + b"\x01\x00" * 70
    yield b"\0" + greeting(b"CURVE")
    yield b"\1" + hello + frame(bytes(300), announced=1800)
