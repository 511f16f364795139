"""ZMTP 3.1 with the mechanism NULL as bytes, as far as a ROUTER needs it (ZeroMQ RFC 37; RFC 23 numbers its parts)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

GREETING_BYTES = 64
SIGNATURE = b"\xff"  # the first byte of a greeting since ZMTP 2
MORE, LONG, COMMAND = 1, 2, 4  # flags of a frame
MAX_COMMAND_BYTES = 8192  # READY may have properties of the application's own; a PING has 23 bytes at most

GREETING = SIGNATURE + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
_MECHANISM = slice(12, 32)
_PING, _READY = b"\x04PING", b"\x05READY"
_TTL_BYTES, _CONTEXT_BYTES = 2, 16  # of PING
_MAY_ASK = frozenset((b"REQ", b"DEALER", b"ROUTER"))  # kinds of socket that a ROUTER may talk to (RFC 28)


class ProtocolError(Exception):
    """A peer says what ZMTP does not allow, or more than is accepted from anybody."""


def check_greeting(greeting: bytes) -> None:
    """Raise ProtocolError unless a peer's greeting, of GREETING_BYTES, is one of ZMTP 3 with NULL."""
    if greeting[9] != 0x7F or greeting[10] < 3:
        raise ProtocolError("no greeting of ZMTP 3")
    if greeting[_MECHANISM].rstrip(b"\0") != b"NULL":
        raise ProtocolError("another mechanism than NULL")


def check_ready(command: bytes) -> None:
    """Raise ProtocolError unless this is READY of a kind of socket that may ask."""
    if not command.startswith(_READY):
        raise ProtocolError("no READY")
    if dict(_properties(command[len(_READY) :])).get(b"socket-type") not in _MAY_ASK:
        raise ProtocolError("no peer of a ROUTER")


def pong(command: bytes) -> bytes | None:
    """Return the frame that answers a PING, with the context that it asks to hear again; None for other commands."""
    if not command.startswith(_PING):
        return None
    return framed(COMMAND, b"\x04PONG" + command[len(_PING) + _TTL_BYTES :][:_CONTEXT_BYTES])


def framed(flags: int, body: bytes) -> bytes:
    """Return a whole frame."""
    size = len(body)
    return (bytes((flags, size)) if size < 256 else struct.pack(">BQ", flags | LONG, size)) + body


def head_of(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Return flags and size of the frame that begins at `at`, and where its body begins; None where that is cut off.

    Raises ProtocolError where a flag is set that ZMTP does not have.
    """
    left = len(data) - at
    if left < 2:
        return None
    flags = data[at]
    if flags & ~(MORE | LONG | COMMAND):
        raise ProtocolError("an unknown flag")
    if not flags & LONG:
        return flags, data[at + 1], at + 2
    return (flags, int.from_bytes(data[at + 1 : at + 9], "big"), at + 9) if left >= 9 else None


def _property(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + struct.pack(">I", len(value)) + value


def _properties(rest: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield names, which are the same in upper and lower case, and values."""
    at = 0
    while at < len(rest):
        value_at = at + 1 + rest[at] + 4
        size = int.from_bytes(rest[value_at - 4 : value_at], "big")
        if value_at + size > len(rest):
            raise ProtocolError("a property that is cut off")
        yield rest[at + 1 : value_at - 4].lower(), rest[value_at : value_at + size]
        at = value_at + size


READY = framed(COMMAND, _READY + _property(b"Socket-Type", b"ROUTER") + _property(b"Identity", b""))
