"""When the daemon reports to the service manager that it works: no thread of its own does so.

Each worker comes round once a second or more often. The one that finds a report due looks whether all of them have come
round since the last one, and whether the daemon's own request was answered. Workers that hang report nothing. That
request, a small image, takes the way of every request, in front of the queue, so that a full one cannot hold it up. It
is outside of all that is counted: admission's limits, the tally, the energies, the models' runs and times.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import cv2
import numpy as np

from jetsel.base.errors import InternalError
from jetsel.base.events import event
from jetsel.daemon.admission import Load
from jetsel.daemon.job import Job
from jetsel.daemon.snapshot import Current
from jetsel.engines import Backends
from jetsel.policies.single import Single
from jetsel.wire import PROTOCOL_VERSION, Classify

SIDE_PX = 64
PIXELS = np.random.default_rng(0).integers(0, 256, (SIDE_PX, SIDE_PX, 3), np.uint8)
PHOTOGRAPH = memoryview(cv2.imencode(".jpg", PIXELS)[1].tobytes())


class Probe:
    """At most one such request at a time. The watchdog asks, whatever thread it is called by, under its lock."""

    def __init__(self, current: Current, backends: Backends, begin: Callable[[Job], None]) -> None:
        """begin: puts a job in front of the queue."""
        self._current = current
        self._backends = backends
        self._begin = begin
        self._job: Job | None = None  # until it has ended and that is reported
        self._outcome: str | None = None

    def ask(self) -> str | None:
        """Have it made, unless it is under way; return why there is no answer yet, None once there is one.

        None, too, if it waits for an engine host, which its supervisor ends and starts again if that must be. A
        model that is unavailable was asked as far as it can be; a defect is no answer, and it is made again. None,
        too, while every model is unloaded: to ask would load one.
        """
        job, outcome = self._job, self._outcome
        if job is not None and outcome is None:
            waited_s = time.monotonic() - job.received_s
            is_at_host = job.run is not None and self._is_at_host(job)
            return None if is_at_host else f"the daemon's own request has waited for {waited_s:.1f} s"
        self._job = self._outcome = None
        if outcome is not None and outcome != InternalError.code:
            return None
        self._job = self._made()
        if self._job is None:
            return None
        self._begin(self._job)
        return "the daemon's own request has just begun" if outcome is None else "a defect ended the daemon's request"

    def over(self, outcome: str) -> None:
        """It has ended, with "ok" or an error's code."""
        self._outcome = outcome

    def _made(self) -> Job | None:
        """Return the request, of the default family's cheapest model that can run; None if all are unloaded."""
        snapshot = self._current.enter()
        family = snapshot.families[snapshot.default_family]
        states = {model: family.driver.queues[model].state for model in family.models}
        model = min(states, key=lambda name: ["ready", "unavailable", "loading", "unloaded"].index(states[name]))
        if states[model] == "unloaded":
            self._current.leave(snapshot)
            return None
        reads = family.policies[family.default_policy].features
        return Job(
            route=None,
            message=Classify(v=PROTOCOL_VERSION, id="probe"),
            data=PHOTOGRAPH,
            load=Load("probe", 0, 0),
            snapshot=snapshot,
            family=family,
            policy=Single(model, reads),
            received_s=time.monotonic(),
        )

    def _is_at_host(self, job: Job) -> bool:
        (model,) = job.policy.models
        engine = job.family.driver.queues[model].engine
        return (engine is not None and engine.is_returning) or bool(
            self._backends.get(job.family.backends[model]).asking()
        )


log = logging.getLogger("jetsel.daemon")

FEED_AT = 0.5  # of the period, as sd_watchdog_enabled(3) has it
TELL_AT = 0.75  # of the period without a feeding: the next one is too late, mostly, and the log should know first
LOOK_AT = 0.1  # of the period: the time between two looks once one is due, and the longest that a worker may sleep


class Watchdog:
    """Feeds while the workers work. `turned` is called by each of them whenever it comes round."""

    def __init__(
        self,
        period_s: float | None,
        feed: Callable[[], bool],
        probe: Callable[[], str | None],
        waiting_for_host: Callable[[], frozenset[int]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """period_s: the longest time between two feedings; None: none is due, ever.

        feed: returns whether the service manager took it; what it did not take is tried again at the next look.
        probe: returns why the daemon's own request has no answer yet, None once it has one.
        waiting_for_host: the threads that wait for an engine host, whose supervisor has limits of its own.
        """
        self._period_s = period_s
        self._feed = feed
        self._probe = probe
        self._waiting_for_host = waiting_for_host
        self._now = now
        self._lock = threading.Lock()  # held by the thread that looks
        self._turned_s: dict[int, float] = {}  # by thread: when it came round the last time
        self._fed_s = 0.0
        self._due_s = float("inf")
        self._has_told = False

    @property
    def longest_sleep_s(self) -> float | None:
        """How long a worker may sleep at most, None if there is no watchdog."""
        return None if self._period_s is None else self._period_s * LOOK_AT

    def start(self) -> None:
        """Feed from now on: once the daemon is ready, which is when the service manager begins to wait for it."""
        if self._period_s is not None:
            self._fed_s = self._now()
            self._due_s = self._fed_s + self._period_s * FEED_AT

    def turned(self) -> None:
        """The calling worker has come round: it has done its piece of work, if it had one, and read the socket."""
        if self._period_s is None:
            return
        now_s = self._now()
        self._turned_s[threading.get_ident()] = now_s
        if now_s >= self._due_s and self._lock.acquire(blocking=False):
            try:
                if now_s >= self._due_s:  # else another thread has just looked
                    self._look(now_s, self._period_s)
            finally:
                self._lock.release()

    def _look(self, now_s: float, period_s: float) -> None:
        why = self._stuck(now_s) or self._probe()
        if why is None and not self._feed():
            why = "the service manager accepts no message"
        if why is None:
            self._fed_s, self._due_s = now_s, now_s + period_s * FEED_AT
            if self._has_told:
                log.warning("the watchdog is fed again", extra=event("watchdog-fed"))
            self._has_told = False
            return
        self._due_s = now_s + period_s * LOOK_AT
        if now_s - self._fed_s >= period_s * TELL_AT and not self._has_told:
            self._has_told = True
            log.error("the watchdog is not fed: %s", why, extra=event("watchdog-starved"))

    def _stuck(self, now_s: float) -> str | None:
        """Which worker has not come round since the last feeding; None if each has."""
        at_host = self._waiting_for_host()
        for ident, turned_s in list(self._turned_s.items()):
            if turned_s <= self._fed_s and ident not in at_host:
                names = [thread.name for thread in threading.enumerate() if thread.ident == ident]
                return f"{' '.join(names)} has worked on one task for {now_s - turned_s:.1f} s"
        return None
