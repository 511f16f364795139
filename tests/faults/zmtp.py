"""A peer that speaks ZMTP 3.0 byte by byte, for what libzmq lets no program do: write slowly, stop in a frame."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
"""Signature, version 3.0, mechanism, as-server 0, filler: 64 bytes. https://rfc.zeromq.org/spec/23/, Greeting."""
MORE, LONG, COMMAND = 1, 2, 4


class SlowPeer:
    """A DEALER over a unix socket that writes in pieces with pauses between them."""

    def __init__(self, path: str, piece_bytes: int = 512, pause_s: float = 0.002) -> None:
        self._piece_bytes = piece_bytes
        self._pause_s = pause_s
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._read = self._socket.makefile("rb")
        self.write(GREETING)
        assert self._read.read(64)[10] >= 3, "the peer speaks an older ZMTP"
        self.write(frame(b"\x05READY" + _property(b"Socket-Type", b"DEALER"), COMMAND))
        flags, ready = self._frame()
        assert flags & COMMAND, ready
        assert ready.startswith(b"\x05READY"), ready

    def write(self, data: bytes) -> None:
        """Write all of it, piece by piece."""
        for start in range(0, len(data), self._piece_bytes):
            self._socket.sendall(data[start : start + self._piece_bytes])
            time.sleep(self._pause_s)

    def send(self, frames: Sequence[bytes]) -> None:
        """Send one message."""
        self.write(b"".join(frame(part, MORE * (part is not frames[-1])) for part in frames))

    def receive(self, timeout_s: float) -> bytes:
        """Return the last frame of the next message; heartbeats are answered. Raises TimeoutError."""
        self._socket.settimeout(timeout_s)
        while True:
            flags, body = self._frame()
            if flags & COMMAND:
                if body.startswith(b"\x04PING"):
                    self.write(frame(b"\x04PONG" + body[7:], COMMAND))  # what follows the time to live comes back
            elif not flags & MORE:
                return body

    def close(self) -> None:
        """Hang up."""
        self._read.close()
        self._socket.close()

    def _frame(self) -> tuple[int, bytes]:
        flags = self._exactly(1)[0]
        size = struct.unpack(">Q", self._exactly(8))[0] if flags & LONG else self._exactly(1)[0]
        return flags, self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        found = self._read.read(size)
        if len(found) < size:
            raise ConnectionError("the daemon hung up")
        return found


def frame(body: bytes, flags: int = 0) -> bytes:
    """Return one frame as it goes over the wire."""
    size = struct.pack(">BQ", flags | LONG, len(body)) if len(body) > 255 else struct.pack(">BB", flags, len(body))
    return size + body


def _property(name: bytes, value: bytes) -> bytes:
    return struct.pack(">B", len(name)) + name + struct.pack(">I", len(value)) + value
