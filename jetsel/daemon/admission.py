"""Who is let in: what is in the queue, in requests, bytes and pixels, and how long a request keeps a worker."""

from __future__ import annotations

import threading
from collections import Counter
from typing import NamedTuple

from jetsel.base.config import Server
from jetsel.base.errors import BusyError, DeadlineError, OverLimitError
from jetsel.daemon.identity import TRUSTED

MEMORY = 0.05  # of the running mean of a request's work: it follows the last twenty or so


class Load(NamedTuple):
    """What one request holds from its admission to its answer."""

    client: str
    size_bytes: int
    pixels: int


class Admission:
    """Counters behind one lock; admission is decided where the queue is counted.

    If nothing is configured, a client has half of the queue, so that none fills it alone; root and the daemon's own
    user have all of it, since they may end the daemon anyway.
    """

    def __init__(self, limits: Server, workers: int) -> None:
        self._lock = threading.Lock()
        self.limits = limits
        self._workers = workers
        self._work_ms = 0.0
        self._unlimited = TRUSTED if limits.client_requests is None else frozenset[str]()
        self._most_of_client = limits.client_requests or max(1, limits.queue_requests // 2)
        self._of_client: Counter[str] = Counter()
        self.in_queue = 0
        self.queued_bytes = 0
        self.queued_pixels = 0

    def check(self, load: Load) -> None:
        """Raise what `admit` would of a load of which only some is known yet: OverLimitError or BusyError."""
        limits, of_client = self.limits, self._of_client[load.client]
        if of_client >= self._most_of_client and load.client not in self._unlimited:
            raise OverLimitError(
                f"{load.client} has {of_client} requests under way, and its limit is {self._most_of_client} "
                "(server.client_requests): send again when one of them is answered"
            )
        if (
            self.in_queue >= limits.queue_requests
            or self.queued_bytes + load.size_bytes > limits.queue_mb * 1e6
            or self.queued_pixels + load.pixels > limits.queue_megapixels * 1e6
        ):
            raise BusyError(
                f"the queue is full ({self.in_queue} requests, {self.queued_bytes / 1e6:.1f} MB, "
                f"{self.queued_pixels / 1e6:.1f} megapixels): send again, or raise server.queue_requests, "
                "server.queue_mb or server.queue_megapixels"
            )

    def admit(
        self,
        load: Load,
        deadline_ms: float | None,
        floor_ms: float,
        loading_ms: float = 0.0,
        *,
        adapts: bool = False,
    ) -> None:
        """Count a request in; `release` its load when it is answered.

        floor_ms: the least inference time of any path that the request's policy may take; loading_ms: of loading its
        model meanwhile. adapts: whether it takes less if many wait, so that those ahead are taken to have the
        least, too.
        Raises OverLimitError if its client has as much under way as it may, BusyError if the queue is full,
        DeadlineError if no path can be in time.
        """
        with self._lock:
            self.check(load)
            if deadline_ms is not None:
                work_ms = min(self._work_ms, floor_ms) if adapts else self._work_ms
                self._check_time(deadline_ms, floor_ms, loading_ms, work_ms)
            self._of_client[load.client] += 1
            self.in_queue += 1
            self.queued_bytes += load.size_bytes
            self.queued_pixels += load.pixels

    def _check_time(self, deadline_ms: float, floor_ms: float, loading_ms: float, work_ms: float) -> None:
        # What is queued before it is spread over the workers, and a load goes on beside; its own work comes after.
        wait_ms = work_ms * (self.in_queue // self._workers)
        if max(wait_ms, loading_ms) + floor_ms > deadline_ms:
            loading = f"; the model is not in memory, and loading it takes {loading_ms:.1f} ms" if loading_ms else ""
            raise DeadlineError(
                f"no path can answer within {deadline_ms:g} ms: the queue takes {wait_ms:.1f} ms, and inference at "
                f"least {floor_ms:.1f} ms{loading}"
            )

    def busiest(self, most: int) -> list[tuple[str, int]]:
        """Who has the most requests under way, and how many: no more than `most` clients."""
        with self._lock:
            return self._of_client.most_common(most)

    def release(self, load: Load, work_ms: float | None) -> None:
        """Count a request out; work_ms is how long it kept a worker, None if it failed."""
        with self._lock:
            self._of_client[load.client] -= 1
            if not self._of_client[load.client]:
                del self._of_client[load.client]  # so that who has nothing under way is forgotten
            self.in_queue -= 1
            self.queued_bytes -= load.size_bytes
            self.queued_pixels -= load.pixels
            if work_ms is not None:
                self._work_ms += (work_ms - self._work_ms) * (MEMORY if self._work_ms else 1.0)
