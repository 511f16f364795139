"""Admits requests to the queue within its limits, and refuses those that would miss their deadline or target."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from jetsel.base.config import ServerSettings
from jetsel.base.errors import BusyError, DeadlineError, ImageTooLargeError, OverLimitError
from jetsel.daemon.identity import TRUSTED

NEW_WEIGHT = 0.05  # weight of a new value in the running means of a request's work: they follow the last twenty or so
TOLERATED_LATE = 0.1  # share of answers admitted near their limit that may be late: with more, the margin grows
TRANSPORT_SHARE = (
    0.1  # share of a limit (a deadline or latency target) for the way to the daemon and back, which it cannot measure
)
LARGEST_MARGIN = 0.7  # largest share of a limit that is kept free
NEAR_LIMIT = 0.8
"""Share of a limit, less the margin, from which a request is admitted near it. Only these correct the margin: it cannot
make the others earlier. If they counted, a machine whose times vary would refuse most of what it can answer in time."""
FORGET_S = 60.0  # time constant: a third of the margin is left after this time without an answer that had a limit


class Load(NamedTuple):
    """What one request counts toward the queue's limits, from its admission to its answer."""

    client: str
    size_bytes: int
    pixels: int


class Work(NamedTuple):
    """Time of a worker thread for one answer: in all, and for running models.

    limit_share: time from its arrival to its answer, divided by its limit (deadline or latency target); above 1 it was
    late. None if it had no limit, or was not admitted near it.
    """

    busy_ms: float
    models_ms: float
    limit_share: float | None = None


class Admission:
    """Counts the load of the queue and decides on admission, both behind one lock.

    By default a client may fill half of the queue, so that none fills it alone. Root and the daemon's own user may fill
    all of it, since they may end the daemon anyway.
    """

    def __init__(self, limits: ServerSettings, workers: int, now: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self.limits = limits
        self._workers = workers
        self._now = now
        self._models_ms: float | None = None  # running mean for one answer
        self.overhead_ms = 0.0  # running mean of a worker's time for an answer besides its models, such as decoding
        self._margin = 0.0  # share of a limit that is kept free, at the last answer that corrected it
        self._margin_s = 0.0  # time of that answer
        self._full_since_s: float | None = (
            None  # last answer with work for all workers in the queue; None if idle since
        )
        self._unlimited = TRUSTED if limits.client_requests is None else frozenset[str]()  # clients
        self._most_of_client = limits.client_requests or max(1, limits.queue_requests // 2)
        self._requests_by_client: Counter[str] = Counter()
        self.in_queue = 0
        self.queued_bytes = 0
        self.queued_pixels = 0

    def check(self, load: Load) -> None:
        """Raise the errors of `admit` except DeadlineError; the load's pixels may be 0 while they are unknown."""
        limits, client_requests = self.limits, self._requests_by_client[load.client]
        if load.size_bytes > limits.queue_mb * 1e6 or load.pixels > limits.queue_megapixels * 1e6:
            raise ImageTooLargeError(
                f"the image and its boxes have {load.size_bytes / 1e6:.1f} MB and {load.pixels / 1e6:.1f} megapixels, "
                f"and the whole queue may have {limits.queue_mb:g} MB and {limits.queue_megapixels:g} megapixels: send "
                "a smaller image, or fewer boxes at a time, or raise server.queue_mb or server.queue_megapixels"
            )
        if client_requests >= self._most_of_client and load.client not in self._unlimited:
            raise OverLimitError(
                f"{load.client} has {client_requests} requests under way, and its limit is {self._most_of_client} "
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
        load: Load | None,
        deadline_ms: float | None,
        least_models_ms: float,
        loading_ms: float = 0.0,
        *,
        target_ms: float | None = None,
        adapts: bool = False,
        waited_ms: float = 0.0,
    ) -> bool:
        """Admit a request: count its load until `release`, and return whether its expected time is near its limit.

        load: None for a further box of a message that is counted already. waited_ms: time since the message arrived.
        least_models_ms: shortest inference time among the models with which its policy may begin. loading_ms: time to
        load such a model meanwhile. target_ms: latency target, used if deadline_ms is None. adapts: the policy uses
        cheaper models if many requests wait, so that the requests ahead are estimated at least_models_ms, too.
        Raises OverLimitError if the client has reached its limit, BusyError if the queue is full or no path can meet
        the target, DeadlineError if no path can meet the deadline, ImageTooLargeError if the queue can never hold it.
        """
        with self._lock:
            if load is not None:
                self.check(load)
            limit_ms = target_ms if deadline_ms is None else deadline_ms
            is_near_limit = False
            if limit_ms is not None:
                ahead = self.in_queue - self._workers + (load is not None)
                queue_ms, overhead_ms, margin_ms = waited_ms, 0.0, 0.0
                if ahead > 0:  # otherwise a worker is free: admit, as wrong means are corrected by answers alone
                    models_ms = least_models_ms if adapts or self._models_ms is None else self._models_ms
                    overhead_ms, margin_ms = self.overhead_ms, limit_ms * self._faded_margin(self._now())
                    queue_ms += ahead * (overhead_ms + models_ms) / self._workers
                expected_ms = max(queue_ms, loading_ms) + overhead_ms + least_models_ms
                if expected_ms + margin_ms > limit_ms:
                    takes_ms = {"queue": queue_ms, "loading the model": loading_ms, "inference": least_models_ms}
                    takes_ms |= {"other work": overhead_ms, "margin as answers came late": margin_ms}
                    raise _late_error(limit_ms, takes_ms, is_target=deadline_ms is None)
                is_near_limit = ahead > 0 and expected_ms > NEAR_LIMIT * (limit_ms - margin_ms)
            if load is not None:
                self._requests_by_client[load.client] += 1
                self.in_queue += 1
                self.queued_bytes += load.size_bytes
                self.queued_pixels += load.pixels
            return is_near_limit

    def release(self, load: Load | None, work: Work | None) -> None:
        """Free what `admit` counted (load: None while the message has boxes left). work: None if the request failed."""
        now_s = self._now()
        with self._lock:
            if load is not None:
                self._requests_by_client[load.client] -= 1
                if not self._requests_by_client[load.client]:
                    del self._requests_by_client[load.client]  # forget clients without requests
                self.in_queue -= 1
                self.queued_bytes -= load.size_bytes
                self.queued_pixels -= load.pixels
            if work is not None:
                self._learn(work, now_s)
            self._full_since_s = now_s if self.in_queue >= self._workers else None

    def _learn(self, work: Work, now_s: float) -> None:
        """Update the margin and the mean times with one answer.

        The margin's steps balance if TOLERATED_LATE of the answers are late. While all workers are busy, the time
        between two answers counts as work. It includes what no stage measures: reading the socket, refusing others,
        replying, and waiting for a processor.
        """
        if work.limit_share is not None:
            step = 1 - TOLERATED_LATE if work.limit_share > 1 - TRANSPORT_SHARE else -TOLERATED_LATE
            self._margin = min(LARGEST_MARGIN, max(0.0, self._faded_margin(now_s) + NEW_WEIGHT * step))
            self._margin_s = now_s
        spent_ms = work.busy_ms if self._full_since_s is None else (now_s - self._full_since_s) * 1e3 * self._workers
        if self._models_ms is None:
            self._models_ms, self.overhead_ms = work.models_ms, max(0.0, work.busy_ms - work.models_ms)
            return
        self._models_ms += (work.models_ms - self._models_ms) * NEW_WEIGHT
        self.overhead_ms = max(0.0, self.overhead_ms + (spent_ms - work.models_ms - self.overhead_ms) * NEW_WEIGHT)

    def _faded_margin(self, now_s: float) -> float:
        """Return the margin now; it fades while no answer has a limit, because refusals do not correct it."""
        return self._margin * math.exp((self._margin_s - now_s) / FORGET_S)


def _late_error(limit_ms: float, takes_ms: dict[str, float], *, is_target: bool) -> BusyError | DeadlineError:
    """Return the error for a request that would miss its latency target or deadline. takes_ms: expected times."""
    words = "expected: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in takes_ms.items() if ms)
    if is_target:
        return BusyError(
            f"no operating point can answer within the latency target of {limit_ms:g} ms ({words}): send again later, "
            "or raise policy.latency_target_ms or lower policy.least_accuracy"
        )
    return DeadlineError(f"no path can answer within {limit_ms:g} ms ({words})")
