"""Reports to the service manager that the daemon works (sd_notify(3), WATCHDOG=1), from the worker threads themselves.

Each worker calls `note_round` at least once a second. If a report is due, that worker checks that all workers have
called since the last report, and that the daemon's own probe was answered. If not, nothing is reported. The probe is a
small image that is processed as every request is, in front of the queue, so that a full queue does not delay it. No
limit, counter, energy or model time includes it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np

from jetsel.base.errors import InternalError
from jetsel.base.events import event
from jetsel.daemon.admission import Load
from jetsel.daemon.job import Job
from jetsel.daemon.snapshot import CurrentSnapshot
from jetsel.engines import Backends
from jetsel.policies.single import Single
from jetsel.wire import PROTOCOL_VERSION, Classify

SIDE_PX = 64
PIXELS = np.random.default_rng(0).integers(0, 256, (SIDE_PX, SIDE_PX, 3), np.uint8)
PHOTOGRAPH = memoryview(cv2.imencode(".jpg", PIXELS)[1].tobytes())


@dataclass(eq=False)
class Probe:
    """Sends the daemon a request of its own, one at a time, to test that it answers. The watchdog holds its lock."""

    current: CurrentSnapshot
    backends: Backends
    put_in_front: Callable[[Job], None]  # puts a job in front of the queue
    _job: Job | None = field(init=False, default=None)  # until its outcome is reported
    _outcome: str | None = field(init=False, default=None)

    def ask(self) -> str | None:
        """Send a probe unless one is under way; return why it has no answer yet, None once it has one.

        None also if the probe waits for an engine host, which has a supervisor with its own limits; if its model is
        unavailable; and if every model is unloaded, since a probe would load one. After a defect, send it again.
        """
        job, outcome = self._job, self._outcome
        if job is not None and outcome is None:
            waited_s = time.monotonic() - job.received_s
            is_at_host = job.run is not None and self._is_at_host(job)
            return None if is_at_host else f"the daemon's own request has waited for {waited_s:.1f} s"
        self._job = self._outcome = None
        if outcome is not None and outcome != InternalError.code:
            return None
        self._job = self._make_job()
        if self._job is None:
            return None
        self.put_in_front(self._job)
        return "the daemon's own request has just begun" if outcome is None else "a defect ended the daemon's request"

    def note_outcome(self, outcome: str) -> None:
        """Note how the probe under way ended: "ok" or an error's code. The pipeline calls this."""
        self._outcome = outcome

    def _make_job(self) -> Job | None:
        """Return a job for the default family's cheapest model that can run; None if all models are unloaded."""
        snapshot = self.current.enter()
        family = snapshot.families[snapshot.default_family]
        states = {model: family.driver.queues[model].state for model in family.models}
        model = min(states, key=lambda name: ["ready", "unavailable", "loading", "unloaded"].index(states[name]))
        if states[model] == "unloaded":
            self.current.leave(snapshot)
            return None
        features = family.policies[family.defaults.policy].features  # the probe computes them too
        return Job(
            route=None,
            message=Classify(v=PROTOCOL_VERSION, id="probe"),
            data=PHOTOGRAPH,
            load=Load("probe", 0, 0),
            snapshot=snapshot,
            family=family,
            policy=Single(model, features),
            received_s=time.monotonic(),
        )

    def _is_at_host(self, job: Job) -> bool:
        """Whether the job's model is unloading, or a thread waits for the engine host of its backend."""
        (model,) = job.policy.models
        engine = job.family.driver.queues[model].engine
        return (engine is not None and engine.is_restarting) or bool(
            self.backends.get(job.family.backends[model]).waiting_threads()
        )


log = logging.getLogger("jetsel.daemon")

FEED_AT = 0.5  # of the period, as sd_watchdog_enabled(3) recommends
LOG_AT = 0.75  # of the period without a report: log it, because the next is probably too late
CHECK_AT = 0.1  # of the period: interval between checks once a report is due, and a worker's longest sleep


@dataclass(eq=False)
class Watchdog:
    """Reports while all workers work: each calls `note_round` whenever it completes a round.

    period_s: the longest time between two reports; None for no watchdog. feed: reports, and returns whether the service
    manager took it; if not, the next check tries again. probe: returns why the daemon's own request has no answer yet,
    None once it has one. waiting_for_host: returns the identifiers of the threads that wait for an engine host, whose
    supervisor has its own limits.
    """

    period_s: float | None
    feed: Callable[[], bool]
    probe: Callable[[], str | None]
    waiting_for_host: Callable[[], frozenset[int]]
    clock_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # held by the thread that checks
        self._rounds_s: dict[int, float] = {}  # by thread: time of its last call of `note_round`
        self._fed_s = 0.0  # time of the last report
        self._due_s = float("inf")  # time of the next check
        self._has_logged = False

    @property
    def longest_sleep_s(self) -> float | None:
        """Longest time that a worker may sleep, None without a watchdog."""
        return None if self.period_s is None else self.period_s * CHECK_AT

    def start(self) -> None:
        """Begin to report. Call this when the daemon is ready: the service manager expects reports from then on."""
        if self.period_s is not None:
            self._fed_s = self.clock_s()
            self._due_s = self._fed_s + self.period_s * FEED_AT

    def note_round(self) -> None:
        """Note that the calling worker has done its current work and read the socket; check if a report is due."""
        if self.period_s is None:
            return
        now_s = self.clock_s()
        self._rounds_s[threading.get_ident()] = now_s
        if now_s >= self._due_s and self._lock.acquire(blocking=False):
            try:
                if now_s >= self._due_s:  # else another thread has just checked
                    self._check(now_s, self.period_s)
            finally:
                self._lock.release()

    def _check(self, now_s: float, period_s: float) -> None:
        """Report if all works; otherwise check again soon, and log the reason once if the next report may be late."""
        why = self._stuck_worker(now_s) or self.probe()
        if why is None and not self.feed():
            why = "the service manager accepts no message"
        if why is None:
            self._fed_s, self._due_s = now_s, now_s + period_s * FEED_AT
            if self._has_logged:
                log.warning("the watchdog is fed again", extra=event("watchdog-fed"))
            self._has_logged = False
            return
        self._due_s = now_s + period_s * CHECK_AT
        if now_s - self._fed_s >= period_s * LOG_AT and not self._has_logged:
            self._has_logged = True
            log.error("the watchdog is not fed: %s", why, extra=event("watchdog-starved"))

    def _stuck_worker(self, now_s: float) -> str | None:
        """Return which worker has not completed a round since the last report, None if each has."""
        at_host = self.waiting_for_host()
        for ident, round_s in list(self._rounds_s.items()):
            if round_s <= self._fed_s and ident not in at_host:
                names = [thread.name for thread in threading.enumerate() if thread.ident == ident]
                return f"{' '.join(names)} has worked on one task for {now_s - round_s:.1f} s"
        return None
