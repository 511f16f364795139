"""Bounds what a connection may cost before a whole request has come: bytes and time of its head, and the number of all.

When too many connections are open, a new one replaces one that waits for a request. So clients that open many
and send nothing lose their own, and one that sends a request at once is served.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LET_IN = "let in"  # in the state of a request that passed the token and the limit of concurrency
HEAD_BYTES = 65_536
HEAD_S = 10.0
IDLE_CONNECTIONS = 256  # beside those of requests under way
RESERVED_FILES = 320  # for the daemon's sockets, and for connections that are accepted before one is closed
REFUSAL = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def most_connections(concurrency: int) -> int:
    """Return how many connections may be open: those of requests at once, idle ones, and no more than files allow."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(concurrency + IDLE_CONNECTIONS, files - RESERVED_FILES))


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's connection, with bounds."""

    def __init__(self, *args: Any, most: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most = most
        self._unread_bytes = 0  # that came since the last byte of a body: a head, or trailers
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take up a connection, and close another one if there are too many."""
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > self._most:
            _one_to_close(cast("set[BoundedConnection]", self.connections)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless a head has no end."""
        self._unread_bytes += len(data)
        super().data_received(data)
        if self._unread_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(REFUSAL)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Begin a request."""
        self._unread_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take in a piece of a body."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is there already."""
        super().on_response_complete()
        if self.is_idle and not self.transport.is_closing():
            self._wait_for_head()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way that was let in."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or not cycle.scope["state"].get(LET_IN)

    @property
    def ends_s(self) -> float:
        """When it is closed if it stays idle, by the loop's clock."""
        return 0.0 if self._timer is None else self._timer.when()

    def _wait_for_head(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(HEAD_S, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _one_to_close(connections: set[BoundedConnection]) -> BoundedConnection:
    """Return the connection that has waited longest, of the address that has most of those that wait.

    There is always one: a new connection waits, too.
    """
    idle = [one for one in connections if one.is_idle and not one.transport.is_closing()]
    counts = Counter(one.client and one.client[0] for one in idle)
    return max(idle, key=lambda one: (counts[one.client and one.client[0]], -one.ends_s))
