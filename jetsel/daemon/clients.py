"""What each client has under way and how fast it asks, so that one at its limits leaves room for the others."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from jetsel.config import Server
from jetsel.daemon.identity import TRUSTED
from jetsel.errors import OverLimitError

BURST_S = 1.0  # a client that was silent may send what its rate allows in this time at once, and one request at least
FEWEST_SWEPT = 64  # clients that are kept before any is looked at for having left


class Load(NamedTuple):
    """What one request holds from its admission to its answer. client: None where nothing is counted by client."""

    client: str | None
    size_bytes: int
    pixels: int


class _Client(Struct, eq=False):
    tokens: float  # requests that it may send now
    paced_s: float  # when that was so
    requests: int = 0
    size_bytes: int = 0
    pixels: int = 0


class Clients:
    """Counters by client's name, without a lock: Admission calls them under its own.

    A client's share of the queue's bytes and pixels is that of its requests: `client_requests` of `queue_requests`. Who
    has nothing under way may send one request of any size, so that a share never shuts out a large photograph. A client
    is forgotten once it has nothing under way and its rate would allow a whole burst.

    Where nothing is configured, a client has half of the queue, so that none fills it alone; root and the daemon's own
    user have all of it, since they may end the daemon anyway.
    """

    def __init__(self, limits: Server, now: Callable[[], float] = time.monotonic) -> None:
        most = max(1, limits.queue_requests // 2) if limits.client_requests is None else limits.client_requests
        share = min(1.0, most / limits.queue_requests)
        self._unlimited = TRUSTED if limits.client_requests is None else frozenset[str]()
        self._most_requests = most
        self._most_bytes = share * limits.queue_mb * 1e6
        self._most_pixels = share * limits.queue_megapixels * 1e6
        self._rate_hz = limits.client_rate_hz
        self._burst = max(1.0, BURST_S * (limits.client_rate_hz or 0.0))
        self._now = now
        self._known: dict[str, _Client] = {}
        self._sweep_at = FEWEST_SWEPT

    def __len__(self) -> int:
        """How many clients are remembered."""
        return len(self._known)

    def pace(self, name: str) -> None:
        """Count one message of this client; raises OverLimitError where it sends faster than its rate.

        A token bucket (as in RFC 2697, section 3): it fills at the rate, up to the burst, and a message takes one.
        """
        if self._rate_hz is None:
            return
        client, now_s = self._client(name), self._now()
        client.tokens = min(self._burst, client.tokens + (now_s - client.paced_s) * self._rate_hz)
        client.paced_s = now_s
        if client.tokens < 1:
            raise OverLimitError(
                f"{name} sends more than its {self._rate_hz:g} messages a second (server.client_rate_hz): send again "
                f"in {(1 - client.tokens) / self._rate_hz:.3f} s"
            )
        client.tokens -= 1

    def check(self, load: Load) -> None:
        """Raise OverLimitError where the client has as much under way as it may."""
        client = None if load.client is None else self._known.get(load.client)
        if client is None or client.requests == 0 or load.client in self._unlimited:
            return
        if (
            client.requests >= self._most_requests
            or client.size_bytes + load.size_bytes > self._most_bytes
            or client.pixels + load.pixels > self._most_pixels
        ):
            raise OverLimitError(
                f"{load.client} has {client.requests} requests of {client.size_bytes / 1e6:.1f} MB and "
                f"{client.pixels / 1e6:.1f} megapixels under way, and its limit is {self._most_requests} of "
                f"{self._most_bytes / 1e6:.1f} MB and {self._most_pixels / 1e6:.1f} megapixels "
                "(server.client_requests): send again when one of them is answered"
            )

    def enter(self, load: Load) -> None:
        """Count a request in."""
        if load.client is None:
            return
        client = self._client(load.client)
        client.requests += 1
        client.size_bytes += load.size_bytes
        client.pixels += load.pixels

    def leave(self, load: Load) -> None:
        """Count a request out."""
        if load.client is None:
            return
        client = self._known[load.client]
        client.requests -= 1
        client.size_bytes -= load.size_bytes
        client.pixels -= load.pixels
        if client.requests == 0 and self._rate_hz is None:
            del self._known[load.client]

    def busiest(self, most: int) -> list[tuple[str, int]]:
        """Who has the most requests under way, and how many: no more than `most` clients, those that have any."""
        under_way = [(name, client.requests) for name, client in self._known.items() if client.requests]
        return heapq.nlargest(most, under_way, key=lambda pair: pair[1])

    def _client(self, name: str) -> _Client:
        client = self._known.get(name)
        if client is None:
            if len(self._known) >= self._sweep_at:
                self._sweep()
            client = self._known[name] = _Client(self._burst, self._now())
        return client

    def _sweep(self) -> None:
        """Forget who is gone; the next sweep comes at twice as many as are left, so that a client costs O(1)."""
        rate_hz, now_s = self._rate_hz or 0.0, self._now()
        self._known = {
            name: client
            for name, client in self._known.items()
            if client.requests or client.tokens + (now_s - client.paced_s) * rate_hz < self._burst
        }
        self._sweep_at = max(FEWEST_SWEPT, 2 * len(self._known))
