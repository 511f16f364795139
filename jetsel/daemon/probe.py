"""The daemon's own request: a small photograph on the way of everybody's, so that an answer means that it works.

It is outside of all that is counted: admission's limits, the tally, the energies, the models' runs and times. It has a
place of its own in front of the queue, so that a full one cannot hold it up.
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
    """At most one such request at a time. Any thread may call."""

    def __init__(self, current: Current, backends: Backends) -> None:
        self._current = current
        self._backends = backends
        self._waiting: Job | None = None
        self._job: Job | None = None
        self._outcome: str | None = None
        self._again_s = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether one waits to be taken."""
        return self._waiting is not None

    def ask(self) -> str | None:
        """Have it made, unless it is under way; return why there is no answer yet, None once there is one.

        None, too, where it waits for an engine host, which its supervisor ends and starts again where that must be.
        """
        job, outcome = self._job, self._outcome
        if job is not None:
            if job is not self._waiting and self._is_at_host(job):
                return None
            waited_s = time.monotonic() - job.received_s
            return f"the daemon's own request, of {job.policy.name}, has waited for {waited_s:.1f} s"
        if outcome is not None and outcome != InternalError.code:
            self._outcome = None
            return None  # a model that is unavailable was asked as far as it can be
        if time.monotonic() >= self._again_s:
            self._job = self._waiting = self._made()
            self._again_s = self._job.received_s + AGAIN_S
        return "the daemon's own request has only begun" if outcome is None else "a defect ends its own request"

    def take(self) -> Job | None:
        """Return the one that waits, for a worker to begin; None where none does. Called under the pool's lock."""
        job, self._waiting = self._waiting, None
        return job

    def over(self, outcome: str) -> None:
        """The one that was taken has ended, with "ok" or an error's code."""
        self._outcome, self._job = outcome, None

    def _made(self) -> Job:
        snapshot = self._current.enter()
        family, model = cheapest(snapshot)
        reads = family.policies["top1"][family.default_policy["top1"]].features
        return Job(
            route=NOWHERE,
            request=Classify(v=PROTOCOL_VERSION, id="probe"),
            data=PHOTOGRAPH,
            load=Load(None, 0, 0),
            snapshot=snapshot,
            family=family,
            policy=Single(model, reads),
            fallback=None,
            received_s=time.monotonic(),
            deadline_s=None,
            is_probe=True,
        )

    def _is_at_host(self, job: Job) -> bool:
        (model,) = job.policy.models
        engine = job.family.driver.lanes[model].engine
        return (engine is not None and engine.is_returning) or bool(
            self._backends.get(job.family.backends[model]).asking()
        )


def cheapest(snapshot: Snapshot) -> tuple[ServedFamily, str]:
    """Return the cheapest model that can run, of the default family if one of it can; where none can, the cheapest."""
    default = snapshot.families[snapshot.default_family]
    for family in (default, *snapshot.families.values()):
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


PHOTOGRAPH = memoryview(drawn())
