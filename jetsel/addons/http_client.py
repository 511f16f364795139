"""HTTP to servers that are not ours, with the standard library: one deadline for a whole exchange, bounded bodies."""

from __future__ import annotations

import time
import urllib.request
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from socket import socket
from typing import Any, NoReturn

IDLE_S = 30.0  # after this long without a byte, a connection counts as broken
_BLOCK_BYTES = 65_536  # read at a time

CONNECTION_ERRORS = (OSError, HTTPException)
"""What an exchange raises if the way to the server breaks; it is worth another try."""


class _Response(HTTPResponse):
    """A reply that is read until a moment of the monotonic clock, also if the server sends a byte now and then."""

    def __init__(self, sock: socket, *arguments: Any, until_s: float, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = BufferedReader(_DeadlineReader(self.fp.detach(), sock, until_s))

    def read(self, size: int | None = None, /) -> bytes:
        """Return at most `size` bytes that have arrived (None: a block), none at the end; raises CONNECTION_ERRORS.

        http.client itself takes a cut for the end and believes a chunk's size; urllib reads a redirect's body whole.
        """
        received_bytes = self.read1(_BLOCK_BYTES if size is None else size)
        if not received_bytes and self.length:
            raise OSError("the connection was cut")
        return received_bytes


class _DeadlineReader(RawIOBase):
    """What a socket receives; each read waits for the time that is left and no longer."""

    def __init__(self, stream: RawIOBase, sock: socket, until_s: float) -> None:
        self._stream, self._sock, self._until_s = stream, sock, until_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_remaining_s(self._until_s))
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class Http(HTTPConnection):
    """A connection to http:// whose steps, and all reads of its reply, end at a moment of the monotonic clock."""

    def __init__(self, *arguments: Any, until_s: float, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "timeout": _remaining_s(until_s)})
        self.response_class = partial(_Response, until_s=until_s)  # type: ignore[assignment]  # makes one


class Https(Http, HTTPSConnection):
    """A connection to https:// that ends in time as Http does."""


class _DeadlineHandlers(urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.FTPHandler):
    """Opens http:// and https:// by connections that end in time, and ftp://, where a server may redirect to, never."""

    def __init__(self, until_s: float) -> None:
        super().__init__()
        self._until_s = until_s

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(Http, until_s=self._until_s), request)

    def https_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(Https, until_s=self._until_s), request)

    def ftp_open(self, request: urllib.request.Request) -> NoReturn:
        raise OSError(f"the server redirects to {request.full_url}")


def send_request(request: urllib.request.Request, token: str | None, until_s: float) -> HTTPResponse:
    """Send a request, follow redirects, and return the reply; all ends at this moment of the monotonic clock.

    token: bearer token (RFC 6750), None for none; only the server of the address gets it, none that it redirects to.
    Raises HTTPError for a reply that is an error, one of CONNECTION_ERRORS if there is none.
    """
    if token is not None:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    opener = urllib.request.build_opener(_DeadlineHandlers(until_s))
    try:
        reply: HTTPResponse = opener.open(request)
    except ValueError as fault:
        raise OSError(f"the server redirects to an invalid address: {fault}") from None
    return reply


def read_all(reply: HTTPResponse, max_bytes: int) -> bytes:
    """Return a reply's whole body; raises one of CONNECTION_ERRORS, also for more than `max_bytes`."""
    content = bytearray()
    while received_bytes := reply.read(_BLOCK_BYTES):
        content += received_bytes
        if len(content) > max_bytes:
            raise OSError(f"the reply has over {max_bytes} bytes")
    return bytes(content)


def _remaining_s(until_s: float) -> float:
    """Return how long the next step may take, in seconds; raises TimeoutError at or after `until_s`."""
    remaining_s = until_s - time.monotonic()
    if remaining_s <= 0:
        raise TimeoutError("it takes too long")
    return min(IDLE_S, remaining_s)
