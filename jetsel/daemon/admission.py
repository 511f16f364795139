"""Who is let in: what is in the queue, in requests, bytes and pixels, and how long a request keeps a worker."""

from __future__ import annotations

import threading

from jetsel.config import Server
from jetsel.daemon.clients import Clients, Load
from jetsel.errors import BusyError, DeadlineError

MEMORY = 0.05  # of the running mean of a request's work: it follows the last twenty or so


class Admission:
    """Counters behind one lock; admission is decided where the queue is counted."""

    def __init__(self, limits: Server, workers: int) -> None:
        self._lock = threading.Lock()
        self.limits = limits
        self._workers = workers
        self._work_ms = 0.0
        self._clients = Clients(limits)
        self.in_queue = 0
        self.queued_bytes = 0
        self.queued_pixels = 0

    def look(self, load: Load) -> None:
        """Raise what `admit` would of a load of which only some is known yet: OverLimitError or BusyError."""
        if not self.in_queue:  # no client is at its limit
            self._check_room(load)
            return
        with self._lock:
            self._clients.check(load)
            self._check_room(load)

    def admit(self, load: Load, deadline_ms: float | None, floor_ms: float) -> None:
        """Count a request in; `release` its load when it is answered.

        floor_ms: the least inference time of any path that the request's policy may take.
        Raises OverLimitError where its client has as much under way as it may, BusyError where the queue is full,
        DeadlineError where no path can be in time.
        """
        with self._lock:
            self._clients.check(load)
            self._check_room(load)
            if deadline_ms is not None:
                self._check_time(deadline_ms, floor_ms)
            self._clients.enter(load)
            self.in_queue += 1
            self.queued_bytes += load.size_bytes
            self.queued_pixels += load.pixels

    def _check_room(self, load: Load) -> None:
        limits = self.limits
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

    def _check_time(self, deadline_ms: float, floor_ms: float) -> None:
        # What is queued before it is spread over the workers; its own work comes after.
        wait_ms = self._work_ms * (self.in_queue // self._workers)
        if wait_ms + floor_ms > deadline_ms:
            raise DeadlineError(
                f"no path can answer within {deadline_ms:g} ms: {wait_ms:.1f} ms of waiting and at least "
                f"{floor_ms:.1f} ms of inference are ahead"
            )

    def busiest(self, most: int) -> list[tuple[str, int]]:
        """The clients with the most requests under way."""
        with self._lock:
            return self._clients.busiest(most)

    def release(self, load: Load, work_ms: float | None) -> None:
        """Count a request out; work_ms is how long its answer took without the queue, None where it failed."""
        with self._lock:
            self._clients.leave(load)
            self.in_queue -= 1
            self.queued_bytes -= load.size_bytes
            self.queued_pixels -= load.pixels
            if work_ms is not None:
                self._work_ms += (work_ms - self._work_ms) * (MEMORY if self._work_ms else 1.0)
