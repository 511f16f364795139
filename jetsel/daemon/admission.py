"""Who is let in: what is in the queue, in requests and in bytes, and how long a request keeps a worker."""

from __future__ import annotations

import threading

from jetsel.config import Server
from jetsel.errors import BusyError, DeadlineError

MEMORY = 0.05  # of the running mean of a request's work: it follows the last twenty or so


class Admission:
    """Counters behind one lock; admission is decided where the queue is counted."""

    def __init__(self, limits: Server, workers: int) -> None:
        self._lock = threading.Lock()
        self._limits = limits
        self._workers = workers
        self._work_ms = 0.0
        self.in_queue = 0
        self.queued_bytes = 0

    def admit(self, size_bytes: int, deadline_ms: float | None, floor_ms: float) -> None:
        """Count a request in; raises BusyError where the queue is full, DeadlineError where no path can be in time.

        floor_ms: the least inference time of any path that the request's policy may take.
        """
        with self._lock:
            limit_bytes = self._limits.queue_mb * 1e6
            if self.in_queue >= self._limits.queue_requests or self.queued_bytes + size_bytes > limit_bytes:
                raise BusyError(
                    f"the queue is full ({self.in_queue} requests, {self.queued_bytes / 1e6:.1f} MB): send again, "
                    "or raise server.queue_requests or server.queue_mb"
                )
            if deadline_ms is not None:
                # What is queued before it is spread over the workers; its own work comes after.
                wait_ms = self._work_ms * (self.in_queue // self._workers)
                if wait_ms + floor_ms > deadline_ms:
                    raise DeadlineError(
                        f"no path can answer within {deadline_ms:g} ms: {wait_ms:.1f} ms of waiting and at least "
                        f"{floor_ms:.1f} ms of inference are ahead"
                    )
            self.in_queue += 1
            self.queued_bytes += size_bytes

    def release(self, size_bytes: int, work_ms: float | None) -> None:
        """Count a request out; work_ms is how long its answer took without the queue, None where it failed."""
        with self._lock:
            self.in_queue -= 1
            self.queued_bytes -= size_bytes
            if work_ms is not None:
                self._work_ms += (work_ms - self._work_ms) * (MEMORY if self._work_ms else 1.0)
