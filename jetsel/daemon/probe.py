"""The daemon's own request: a small photograph on the way of everybody's, so that an answer means that it works.

It stands outside of what is counted: of admission's limits, the tally, the energies, the models' runs and times. It has
a place of its own in front of the queue, so that a full one cannot hold it up.
"""

from __future__ import annotations

import time

import cv2
import numpy as np

from jetsel.daemon.clients import Load
from jetsel.daemon.current import Current
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.job import Job
from jetsel.daemon.message import Route
from jetsel.daemon.snapshot import Snapshot
from jetsel.engines import Backends
from jetsel.errors import InternalError
from jetsel.policies.single import Single
from jetsel.wire import PROTOCOL_VERSION, Classify

SIDE_PX = 64
AGAIN_S = 0.25  # after one that ended by a defect of ours
NOWHERE = Route(0)  # connections are numbered from 1


class Probe:
    """At most one such request at a time. Implements watchdog.Probing; any thread may call."""

    def __init__(self, current: Current, backends: Backends) -> None:
        self._current = current
        self._backends = backends
        self._photograph = memoryview(drawn())
        self._waiting: Job | None = None
        self._job: Job | None = None
        self._began_s = 0.0
        self._failure: str | None = None
        self._is_answered = False

    @property
    def is_waiting(self) -> bool:
        """Whether one waits to be taken."""
        return self._waiting is not None

    def ask(self) -> str | None:
        """See watchdog.Probing."""
        job, now_s = self._job, time.monotonic()
        if self._is_answered:
            self._is_answered = False
            return None
        if job is None:
            if now_s - self._began_s >= AGAIN_S:
                self._began_s = now_s
                self._job = self._waiting = self._made(now_s)
            return self._failure or "the daemon's own request has only begun"
        if self._is_at_host(job):
            return None
        return f"the daemon's own request, of {job.policy.name}, has waited for {now_s - self._began_s:.1f} s"

    def take(self) -> Job | None:
        """Return the one that waits, for the crew to begin; None where none does. Called under the crew's lock."""
        job, self._waiting = self._waiting, None
        return job

    def over(self, outcome: str | None) -> None:
        """The one that was taken has ended. A model that is unavailable was asked as far as it can be."""
        self._failure = None
        if outcome == InternalError.code:
            self._failure = "a defect of jetsel's ends its own request, as the log says above"
        self._is_answered = self._failure is None
        self._job = None

    def _made(self, now_s: float) -> Job:
        snapshot = self._current.enter()
        job = None
        try:
            family, model = cheapest(snapshot)
            reads = family.policies["top1"][family.default_policy["top1"]].features
            job = Job(
                route=NOWHERE,
                request=Classify(v=PROTOCOL_VERSION, id="probe"),
                data=self._photograph,
                load=Load(None, 0, 0),
                snapshot=snapshot,
                family=family,
                policy=Single(model, reads),
                fallback=None,
                received_s=now_s,
                deadline_s=None,
                is_probe=True,
            )
            return job
        finally:
            if job is None:  # broken off for want of memory: a reload waits for all that were counted in
                self._current.leave(snapshot)

    def _is_at_host(self, job: Job) -> bool:
        """Whether it waits for an engine host, which its supervisor ends and starts again where that must be."""
        if self._waiting is job:
            return False
        (model,) = job.policy.models
        engine = job.family.driver.lanes[model].engine
        if engine is not None and engine.is_returning:
            return True
        return bool(self._backends.get(job.family.backends[model]).asking())


def cheapest(snapshot: Snapshot) -> tuple[ServedFamily, str]:
    """Return the cheapest model that can run, of the default family if one of it can; where none can, the cheapest."""
    default = snapshot.families[snapshot.default_family]
    families = [default, *(family for family in snapshot.families.values() if family is not default)]
    for family in families:
        for model in family.models:
            if family.driver.lanes[model].reason is None:
                return family, model
    return default, next(iter(default.models))


def drawn() -> bytes:
    """A JPEG file of a few shapes: small, the same at every start, and with something in it for every feature."""
    picture = np.full((SIDE_PX, SIDE_PX, 3), (40, 90, 160), np.uint8)
    cv2.circle(picture, (SIDE_PX // 3, SIDE_PX // 3), SIDE_PX // 4, (200, 180, 60), -1)
    cv2.rectangle(picture, (SIDE_PX // 2, SIDE_PX // 2), (SIDE_PX - 6, SIDE_PX - 10), (20, 220, 120), -1)
    _, data = cv2.imencode(".jpg", picture)
    return data.tobytes()
