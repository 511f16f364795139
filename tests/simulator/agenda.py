"""What is to be done at which time."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable


class Agenda:
    """Calls by the time at which they are due, on CLOCK_MONOTONIC in nanoseconds."""

    def __init__(self) -> None:
        self._calls: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()  # calls that are due at the same time are made in the order of asking

    def at(self, due_ns: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._calls, (due_ns, next(self._order), call))

    def wait_s(self) -> float | None:
        """Return how long nothing is due, None for ever."""
        if not self._calls:
            return None
        return max(0.0, (self._calls[0][0] - time.monotonic_ns()) / 1e9)

    def run(self) -> None:
        """Make each call that is due."""
        while self._calls and self._calls[0][0] <= time.monotonic_ns():
            heapq.heappop(self._calls)[2]()
