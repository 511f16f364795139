"""What comes off the socket, and where its reply goes."""

from __future__ import annotations

from typing import NamedTuple

from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.connection import Connection

MOST_ENVELOPE_BYTES = 4096  # ids of 255 bytes, over more proxies than anybody puts one behind another


class Route(NamedTuple):
    """Where a reply goes. envelope: the frames that it begins with, as its request did."""

    connection: Connection
    envelope: tuple[bytes, ...] = ()


class Message(NamedTuple):
    """One message as it came: where its reply goes, its frames without the envelope, and who sent it."""

    route: Route
    frames: list[memoryview]
    sender: Identity


def unwrapped(frames: list[memoryview]) -> tuple[tuple[bytes, ...], list[memoryview]]:
    """Return the envelope of a message, to its empty delimiter, and what follows it (ZeroMQ RFC 28).

    REQ sends the delimiter alone, with ZMQ_REQ_CORRELATE a number before it, and each proxy puts a peer's id before
    them. Who sends no delimiter has no envelope; an empty frame at the very end is an image and delimits nothing.
    """
    for at, frame in enumerate(frames[:-1]):
        if not len(frame):
            envelope, rest = frames[: at + 1], frames[at + 1 :]
            is_one = sum(map(len, envelope)) <= MOST_ENVELOPE_BYTES
            return (tuple(map(bytes, envelope)), rest) if is_one else ((), frames)
    return (), frames
