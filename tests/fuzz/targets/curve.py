"""What a peer writes to a socket that needs a key: before it has shown one, in a handshake's boxes, and sealed."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.zmtp.connection import Connection
from jetsel.daemon.zmtp.curve import Curve
from jetsel.daemon.zmtp.places import STRANGER
from jetsel.keys import KeyFolder, generate
from tests.fuzz.reading import FRAME_BYTES, PIECES, read
from tests.system.raw import frame, greeting, properties
from tests.system.sealed import Sealer

MAX_BYTES = 4096
WORDS = (
    greeting(b"CURVE")[:20],
    b"\x05HELLO\x01\x00",
    b"\x08INITIATE",
    b"\x07MESSAGE",
    b"\x0bSocket-Type",
    b"\x08Identity",
    b"\x06DEALER",
    b"\x04PING",
)
PAIR = generate()

GREETING, HELLO, INITIATE, BOX, METADATA, TRAFFIC, FRAMES = range(7)
"""Where the data stand, by the first byte: all that is written; behind the greeting; behind HELLO; in the box of
INITIATE; in that box behind a good vouch; behind a good handshake; or there, sealed: frames of two bytes, flags and
length, and a body. The second byte says how what is written is cut."""

__all__ = ["MAX_BYTES", "WORDS", "run", "seeds"]


def _keyring() -> Keyring:
    with tempfile.TemporaryDirectory() as name:
        folder = KeyFolder(Path(name) / "keys")
        folder.make_server(None)
        folder.allow("camera", PAIR.public, is_admin=False)
        return Keyring(str(folder.path))


KEYRING = _keyring()


def run(data: bytes) -> None:
    """Nobody is let in but by the handshake; what comes is within the limits, and the same however it is cut."""
    if len(data) < 2:
        return
    stage = data[0] % 7
    whole = _read(stage, data[2:], PIECES[-1])
    assert _read(stage, data[2:], PIECES[data[1] % len(PIECES)]) == whole


def _read(stage: int, data: bytes, piece: int) -> tuple[list[list[bytes]], bool, int]:
    """Return the messages, whether the peer was refused, and how many commands it was answered with."""
    peer, ours = socket.socketpair()
    with peer, ours:
        ours.setblocking(False)
        peer.setblocking(False)
        connection = Connection(ours, 1, Curve(KEYRING, "192.0.2.7"), STRANGER, FRAME_BYTES, 0.0)
        sealer = Sealer(PAIR, KEYRING.server.public)
        if stage != GREETING:
            peer.sendall(greeting(b"CURVE"))
        if stage >= INITIATE:
            _answered(peer, connection, sealer.hello())
            sealer.welcomed(connection.to_send[-1][2:])
        if stage >= TRAFFIC:
            _answered(peer, connection, sealer.initiate())
            assert connection.identity.name == "key camera"
        peer.sendall(_written(stage, data, sealer))
        found, is_refused = read(connection, piece)
        assert connection.is_open == (connection.identity.name == "key camera")
        assert not connection.is_open or stage >= METADATA, "nobody makes a vouch up"
        return found, is_refused, len(connection.to_send)


def _answered(peer: socket.socket, connection: Connection, command: bytes) -> None:
    peer.sendall(command)
    assert read(connection, PIECES[-1]) == ([], False)


def _written(stage: int, data: bytes, sealer: Sealer) -> bytes:
    if stage == BOX:
        return sealer.initiate(said=data)
    if stage == METADATA:
        return sealer.initiate(said=sealer.public + sealer.vouch() + data)
    if stage != FRAMES:
        return data
    written, at = b"", 0
    while at + 2 <= len(data):
        flags, size = data[at], data[at + 1]
        written += sealer.frame(data[at + 2 : at + 2 + size], flags)
        at += 2 + size
    return written


def seeds() -> Iterator[bytes]:
    sealer = Sealer(PAIR, KEYRING.server.public)
    yield bytes((GREETING, 0)) + greeting(b"CURVE") + sealer.hello()
    yield bytes((GREETING, 1)) + greeting(b"NULL")
    yield bytes((HELLO, 2)) + sealer.hello()
    yield bytes((INITIATE, 3)) + b"\x06" + bytes(6) + b"\x01\x01" + b"\x08INITIATE" + bytes(248)
    yield bytes((BOX, 0)) + sealer.public + bytes(96) + properties()
    yield bytes((METADATA, 1)) + properties(Identity=b"camera-1")
    yield bytes((TRAFFIC, 2)) + frame(b"\x07MESSAGE" + bytes(60))
    yield bytes((FRAMES, 3)) + b"\x01\x00" + b"\x00\x02{}" + b"\x02\x09\x04PING\0\0ab" + b"\x00\x01x"
    yield bytes((FRAMES, 4)) + b"\x01\x00" * 70
