"""ZMTP 3.1 as bytes, as far as a ROUTER without keys needs it (ZeroMQ RFC 37; RFC 23 numbers its grammar's parts)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

GREETING_BYTES = 64
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
MORE, LONG, COMMAND = 1, 2, 4  # flags of a frame
SHORTEST_HEAD, LONGEST_HEAD = 2, 9
MAX_COMMAND_BYTES = 8192  # READY of an application with properties of its own; PING has 23 at most
LONGEST_ID = 255
ASKS = frozenset((b"REQ", b"DEALER", b"ROUTER"))  # what a ROUTER may talk to (RFC 28)

_PING, _READY = b"\x04PING", b"\x05READY"
_TTL_BYTES, _CONTEXT_BYTES = 2, 16  # of PING


class ProtocolError(Exception):
    """A peer says what ZMTP does not allow, or more than is taken from anybody."""


def check_greeting(greeting: bytes) -> None:
    """Raise ProtocolError unless these 64 bytes are the greeting of a peer of ZMTP 3 that needs no key."""
    if greeting[0] != 0xFF or greeting[9] != 0x7F or greeting[10] < 3:
        raise ProtocolError("no greeting of ZMTP 3")
    if greeting[12:32].rstrip(b"\0") != b"NULL":
        raise ProtocolError("another mechanism than NULL")


def head(flags: int, size: int) -> bytes:
    """Return what a frame begins with."""
    return bytes((flags, size)) if size < 256 else struct.pack(">BQ", flags | LONG, size)


def ready() -> bytes:
    """Return the command that ends our handshake."""
    body = _READY + _property(b"Socket-Type", b"ROUTER") + _property(b"Identity", b"")
    return head(COMMAND, len(body)) + body


def check_ready(body: bytes) -> None:
    """Raise ProtocolError unless the command is READY of a peer that may ask, under a name that ZMTP allows."""
    if not body.startswith(_READY):
        raise ProtocolError("no READY")
    properties = dict(_properties(body[len(_READY) :]))
    if properties.get(b"socket-type") not in ASKS:
        raise ProtocolError("no peer of a ROUTER")
    name = properties.get(b"identity", b"")
    if len(name) > LONGEST_ID or name.startswith(b"\0"):
        raise ProtocolError("no name")


def pong(body: bytes) -> bytes | None:
    """Return the answer to a PING, with what it asks to hear again; None for any other command."""
    if not body.startswith(_PING):
        return None
    answer = b"\x04PONG" + body[len(_PING) + _TTL_BYTES :][:_CONTEXT_BYTES]
    return head(COMMAND, len(answer)) + answer


def message(frames: tuple[bytes, ...]) -> bytes:
    """Return a message as it is sent."""
    last = len(frames) - 1
    return b"".join(
        part for at, frame in enumerate(frames) for part in (head(MORE if at < last else 0, len(frame)), frame)
    )


def _property(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + struct.pack(">I", len(value)) + value


def _properties(rest: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield names, which are the same in upper and lower case, and values."""
    at = 0
    while at < len(rest):
        value_at = at + 1 + rest[at] + 4
        if value_at > len(rest):
            raise ProtocolError("a property that is cut off")
        size = int.from_bytes(rest[value_at - 4 : value_at], "big")
        if value_at + size > len(rest):
            raise ProtocolError("a property that is cut off")
        yield rest[at + 1 : value_at - 4].lower(), rest[value_at : value_at + size]
        at = value_at + size
