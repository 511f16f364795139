"""The daemon's end of the socket to the engine host: one exchange at a time, within a limit.

The framing is that of host/messages.py, which nobody imports: four bytes of length, big-endian, then a JSON object.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from jetsel.engines.hosting.running import Memory

MAX_MESSAGE_BYTES = 65_536
HEADER = struct.Struct("!I")
LOOK_S = 0.2  # how often `stopped` is asked

Stopped = Callable[[], str | None]


class LinkBrokenError(Exception):
    """The host is gone, or what it sent is none of the protocol; nothing more can be believed of it."""


class LinkTimeoutError(LinkBrokenError):
    """The host did not answer within the limit."""


class HostLink:
    """One end of a socketpair. Used by one thread at a time."""

    def __init__(self, connection: socket.socket, memory: Memory) -> None:
        """memory: shared with the host, which learns its size with each message, and maps what has been added."""
        connection.setblocking(False)
        self._socket = connection
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._memory = memory
        self._number = 0
        self._unread = b""

    @property
    def fd(self) -> int:
        """The descriptor, for a poll on the host's end; negative once it is closed."""
        return self._socket.fileno()

    def exchange(
        self, kind: str, request: Mapping[str, Any], limit_s: float, stopped: Stopped | None = None
    ) -> dict[str, Any]:
        """Send one request and return its reply, whether it says ok or not.

        limit_s: until the reply. stopped: asked now and then; a reason that it returns ends the exchange.
        Raises LinkBrokenError, LinkTimeoutError.
        """
        self._number += 1
        number = self._number
        give_up_s = time.monotonic() + limit_s
        self._send({"id": number, "do": kind, **request})
        reply = self._receive(give_up_s, stopped)
        if reply.get("id") != number or "ok" not in reply:
            raise LinkBrokenError(f"it sent something other than a reply to {kind}")
        return reply

    def close(self) -> None:
        """Close this end; the host leaves when it notices."""
        self._socket.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        body = msgspec.json.encode({**message, "memory_bytes": self._memory.size})
        try:
            sent = self._socket.send(HEADER.pack(len(body)) + body)
        except OSError as error:
            raise LinkBrokenError(f"its socket broke: {error.strerror}") from None
        if sent < HEADER.size + len(body):  # the kernel has room for several messages, and the host has read all before
            raise LinkBrokenError("it no longer accepts messages")

    def _receive(self, give_up_s: float, stopped: Stopped | None) -> dict[str, Any]:
        (length,) = HEADER.unpack(self._read(HEADER.size, give_up_s, stopped))
        if length > MAX_MESSAGE_BYTES:
            raise LinkBrokenError(f"it announced a message of {length} bytes; at most {MAX_MESSAGE_BYTES} are read")
        try:
            return msgspec.json.decode(self._read(length, give_up_s, stopped), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise LinkBrokenError(f"it did not send a JSON object: {error}") from None

    def _read(self, length: int, give_up_s: float, stopped: Stopped | None) -> bytes:
        """Return exactly `length` bytes, however they arrive."""
        while len(self._unread) < length:
            left_s = give_up_s - time.monotonic()
            if left_s <= 0:
                raise LinkTimeoutError("it did not answer in time")
            if stopped is not None and (why := stopped()) is not None:
                raise LinkBrokenError(why)
            if not self._poll.poll(1e3 * (left_s if stopped is None else min(left_s, LOOK_S))):
                continue
            try:
                part = self._socket.recv(MAX_MESSAGE_BYTES)  # a whole message, mostly, at once
            except OSError as error:
                raise LinkBrokenError(f"its socket broke: {error.strerror}") from None
            if not part:
                raise LinkBrokenError("it closed the connection")
            self._unread += part
        content, self._unread = self._unread[:length], self._unread[length:]
        return content
