"""The daemon's end of the socket to the engine host: one exchange at a time, within a limit.

The framing is that of host.py, which imports nothing of ours and is imported by nobody: four bytes of length,
big-endian, then a JSON object.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

MAX_MESSAGE_BYTES = 65_536
HEADER = struct.Struct("!I")
SLOW = ("load", "build")  # what may send progress, which begins its limit anew

Progress = Callable[[str, float | None], None]
Feed = Callable[[], Mapping[str, Any]]


class LinkBrokenError(Exception):
    """The host is gone, or what it sent is none of the protocol; nothing more can be believed of it."""


class LinkTimeoutError(LinkBrokenError):
    """The host did not answer within the limit."""


class Link:
    """One end of a socketpair. Used by one thread at a time, but for `hang_up`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._number = 0
        self._limit_s = 0.0
        self._unread = b""
        self._ending = threading.Lock()  # the number of a closed descriptor may be another's at once

    @property
    def fd(self) -> int:
        """The descriptor, for a poll on the host's end."""
        return self._socket.fileno()

    def exchange(
        self,
        kind: str,
        request: Mapping[str, Any],
        limit_s: float,
        progress: Progress | None = None,
        feed: Feed | None = None,
    ) -> dict[str, Any]:
        """Send one request and return its reply, whether it says ok or not.

        limit_s: until the reply; each word of progress begins it anew. feed: writes the next batch of photographs into
        the shared memory and returns what is told of it. Raises LinkBrokenError, LinkTimeoutError.
        """
        self._number += 1
        number = self._number
        give_up = time.monotonic() + limit_s
        self._send({"id": number, "do": kind, **request}, give_up)
        while True:
            reply = self._receive(give_up)
            if reply.get("id") != number:
                raise LinkBrokenError(f"it answered another question than {kind}")
            if "ok" in reply:
                return reply
            if kind in SLOW and isinstance(reply.get("progress"), dict):
                if progress is not None:
                    progress(str(reply["progress"].get("stage")), reply["progress"].get("share"))
            elif "need" in reply and feed is not None:
                self._send({"id": number, **feed()}, time.monotonic() + limit_s)
            else:
                raise LinkBrokenError(f"it sent what is neither a reply nor progress during {kind}")
            give_up = time.monotonic() + limit_s

    def close(self) -> None:
        """Close this end; the host leaves when it notices."""
        with self._ending:
            self._socket.close()

    def hang_up(self) -> None:
        """End the exchange that is under way, and any that follows, with LinkBrokenError; any thread may call."""
        with self._ending, contextlib.suppress(OSError):  # closed by now
            self._socket.shutdown(socket.SHUT_RDWR)

    def _send(self, message: Mapping[str, Any], give_up: float) -> None:
        body = msgspec.json.encode(message)
        if len(body) > MAX_MESSAGE_BYTES:
            raise LinkBrokenError(f"a message of {len(body)} bytes; at most {MAX_MESSAGE_BYTES} are read")
        try:
            self._limit(_left(give_up))
            self._socket.sendall(HEADER.pack(len(body)) + body)
        except BlockingIOError:
            raise LinkTimeoutError("it takes no messages any more") from None
        except OSError as error:
            raise LinkBrokenError(f"its socket broke: {error.strerror}") from None

    def _receive(self, give_up: float) -> dict[str, Any]:
        (length,) = HEADER.unpack(self._read(HEADER.size, give_up))
        if length > MAX_MESSAGE_BYTES:
            raise LinkBrokenError(f"it announced a message of {length} bytes; at most {MAX_MESSAGE_BYTES} are read")
        try:
            message = msgspec.json.decode(self._read(length, give_up))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise LinkBrokenError(f"it sent what is no JSON: {error}") from None
        if not isinstance(message, dict):
            raise LinkBrokenError("it sent what is no JSON object")
        return message

    def _read(self, length: int, give_up: float) -> bytes:
        """Return exactly `length` bytes, however they arrive."""
        while len(self._unread) < length:
            try:
                self._limit(_left(give_up))
                part = self._socket.recv(MAX_MESSAGE_BYTES)  # a whole message, mostly, at once
            except BlockingIOError:
                raise LinkTimeoutError("it did not answer in time") from None
            except OSError as error:
                raise LinkBrokenError(f"its socket broke: {error.strerror}") from None
            if not part:
                raise LinkBrokenError("it closed its end" + (" in the middle of a message" if self._unread else ""))
            self._unread += part
        content, self._unread = self._unread[:length], self._unread[length:]
        return content

    def _limit(self, limit_s: float) -> None:
        """Have the kernel end a wait (socket(7), SO_RCVTIMEO): Python's own timeout would poll before every call.

        A limit that is the same to a twentieth is left as it is: most requests have one and the same.
        """
        if not 0.95 <= self._limit_s / limit_s <= 1.05:
            self._limit_s = limit_s
            value = struct.pack("ll", int(self._limit_s), int(self._limit_s % 1 * 1e6))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)


def _left(give_up: float) -> float:
    """The time left, never 0, which would mean to wait for ever."""
    return max(give_up - time.monotonic(), 1e-3)
