"""How many requests each client has under way, so that one at its limit leaves room for the others."""

from __future__ import annotations

import heapq
from collections import Counter
from typing import NamedTuple

from jetsel.config import Server
from jetsel.daemon.identity import TRUSTED
from jetsel.errors import OverLimitError


class Load(NamedTuple):
    """What one request holds from its admission to its answer. client: None where nothing is counted by client."""

    client: str | None
    size_bytes: int
    pixels: int


class Clients:
    """Requests under way by client's name, without a lock: Admission calls it under its own.

    Where nothing is configured, a client has half of the queue, so that none fills it alone; root and the daemon's own
    user have all of it, since they may end the daemon anyway.
    """

    def __init__(self, limits: Server) -> None:
        self._unlimited = TRUSTED if limits.client_requests is None else frozenset[str]()
        self._most = limits.client_requests or max(1, limits.queue_requests // 2)
        self._requests: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many clients are remembered."""
        return len(self._requests)

    def check(self, load: Load) -> None:
        """Raise OverLimitError where the client has as many requests under way as it may."""
        if load.client is None or load.client in self._unlimited or self._requests[load.client] < self._most:
            return
        raise OverLimitError(
            f"{load.client} has {self._requests[load.client]} requests under way, and its limit is {self._most} "
            "(server.client_requests): send again when one of them is answered"
        )

    def enter(self, load: Load) -> None:
        """Count a request in."""
        if load.client is not None:
            self._requests[load.client] += 1

    def leave(self, load: Load) -> None:
        """Count a request out; a client with none under way is forgotten."""
        if load.client is not None:
            self._requests[load.client] -= 1
            if not self._requests[load.client]:
                del self._requests[load.client]

    def busiest(self, most: int) -> list[tuple[str, int]]:
        """Who has the most requests under way, and how many: no more than `most` clients."""
        return heapq.nlargest(most, self._requests.items(), key=lambda pair: pair[1])
