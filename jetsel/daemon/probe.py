"""The daemon's own request: a small photograph on the way of everybody's, so that an answer means that it works.

It is outside of all that is counted: admission's limits, the tally, the energies, the models' runs and times. It stands
in front of the queue, so that a full one cannot hold it up.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import cv2
import numpy as np

from jetsel.base.errors import InternalError
from jetsel.daemon.admission import Load
from jetsel.daemon.current import Current
from jetsel.daemon.job import Job
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

        None, too, where it waits for an engine host, which its supervisor ends and starts again where that must be. A
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
        return "the daemon's own request has only begun" if outcome is None else "a defect ends its own request"

    def over(self, outcome: str) -> None:
        """It has ended, with "ok" or an error's code."""
        self._outcome = outcome

    def _made(self) -> Job | None:
        """Return the request, of the default family's cheapest model that can run; None where all are unloaded."""
        snapshot = self._current.enter()
        family = snapshot.families[snapshot.default_family]
        states = {model: family.driver.queues[model].state for model in family.models}
        model = min(states, key=lambda name: ["ready", "unavailable", "loading", "unloaded"].index(states[name]))
        if states[model] == "unloaded":
            self._current.leave(snapshot)
            return None
        reads = family.policies["top1"][family.default_policy["top1"]].features
        return Job(
            route=None,
            request=Classify(v=PROTOCOL_VERSION, id="probe"),
            data=PHOTOGRAPH,
            load=Load("probe", 0, 0),
            snapshot=snapshot,
            family=family,
            policy=Single(model, reads),
            fallback=None,
            received_s=time.monotonic(),
            deadline_s=None,
        )

    def _is_at_host(self, job: Job) -> bool:
        (model,) = job.policy.models
        engine = job.family.driver.queues[model].engine
        return (engine is not None and engine.is_returning) or bool(
            self._backends.get(job.family.backends[model]).asking()
        )
