"""ZMTP 3.1 as bytes, as far as a ROUTER needs it (ZeroMQ RFC 37; RFC 23 numbers its grammar's parts)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

GREETING_BYTES = 64
FIRST = b"\xff"  # of them
MORE, LONG, COMMAND = 1, 2, 4  # flags of a frame
SHORTEST_HEAD, LONGEST_HEAD = 2, 9
MAX_COMMAND_BYTES = 8192  # READY of an application with properties of its own; PING has 23 at most
LONGEST_ID = 255
ASKS = frozenset((b"REQ", b"DEALER", b"ROUTER"))  # what a ROUTER may talk to (RFC 28)

_PING = b"\x04PING"
_TTL_BYTES, _CONTEXT_BYTES = 2, 16  # of PING
_MECHANISM = slice(12, 32)  # of a greeting


class ProtocolError(Exception):
    """A peer says what ZMTP does not allow, or more than is taken from anybody."""


def greeting_of(mechanism: bytes, *, as_server: bool) -> bytes:
    """Return what is said first. as_server: whether this end is the one with the key that the other expects."""
    return FIRST + bytes(8) + b"\x7f\x03\x01" + mechanism.ljust(20, b"\0") + bytes((as_server,)) + bytes(31)


def mechanism_of(greeting: bytes) -> bytes:
    """Return which mechanism a peer's greeting names; raises ProtocolError unless it is one of ZMTP 3."""
    if greeting[:1] != FIRST or greeting[9] != 0x7F or greeting[10] < 3:
        raise ProtocolError("no greeting of ZMTP 3")
    return greeting[_MECHANISM].rstrip(b"\0")


def head(flags: int, size: int) -> bytes:
    """Return what a frame begins with."""
    return bytes((flags, size)) if size < 256 else struct.pack(">BQ", flags | LONG, size)


def framed(flags: int, body: bytes) -> bytes:
    """Return a whole frame."""
    return head(flags, len(body)) + body


def metadata() -> bytes:
    """Return the properties that end our handshake."""
    return _property(b"Socket-Type", b"ROUTER") + _property(b"Identity", b"")


def check_metadata(rest: bytes) -> None:
    """Raise ProtocolError unless these are properties of a peer that may ask, under a name that ZMTP allows."""
    properties = dict(_properties(rest))
    if properties.get(b"socket-type") not in ASKS:
        raise ProtocolError("no peer of a ROUTER")
    name = properties.get(b"identity", b"")
    if len(name) > LONGEST_ID or name.startswith(b"\0"):
        raise ProtocolError("no name")


def pong(body: bytes) -> bytes | None:
    """Return the command that answers a PING, with what it asks to hear again; None for any other command."""
    if not body.startswith(_PING):
        return None
    return b"\x04PONG" + body[len(_PING) + _TTL_BYTES :][:_CONTEXT_BYTES]


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
