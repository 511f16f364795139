"""The daemon under load on a virtual clock: its driver, admission, pace and policies, with recorded answers.

What a request and each model take is measured on the real daemon; the rest is the daemon's own code.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.bare import LIMITS
from benchmarks.virtual import VirtualTime
from jetsel import image
from jetsel.base.config import ServerSettings
from jetsel.base.errors import JetselError
from jetsel.daemon.admission import Admission, Load, Work
from jetsel.daemon.identity import TRUSTED
from jetsel.daemon.pace import allowed_ms
from jetsel.daemon.worker_pool import MOST_JOBS, batch_share
from jetsel.engines import CallerLimiter, Output
from jetsel.engines.onnx import OnnxEngine
from jetsel.policies import Policy
from jetsel.policies.deadline import Deadline
from jetsel.policies.front import Front
from jetsel.policies.policy import Decision
from jetsel.runtime import Driver, ModelQueue, RequestRun, Timers
from jetsel.runtime.forecast import RELATIVE_DEVIATION, UNLIMITED, Allowance, outlook
from jetsel.runtime.model_queue import SentImage
from jetsel.site.configured import ConfiguredFamily
from jetsel.wire import Classify

SPREAD = 0.1  # of its mean, the standard deviation of a model's time


@dataclass(frozen=True)
class Times:
    """What the workers spend, in ms: on a message whatever becomes of it, on a request besides models, on a model."""

    message_ms: float
    around_ms: float
    models_ms: Mapping[str, float]


@dataclass(frozen=True)
class Device:
    """What is simulated. logits: of each model, (n, classes) float32, of n images; temperatures: of its logits."""

    logits: Mapping[str, NDArray[np.float32]]
    temperatures: Mapping[str, float]
    times: Times
    workers: int


@dataclass(eq=False)
class Request:
    """One request: when it is due and read, and what became of it. See jetsel.runtime.request_run.Request."""

    message, is_counted, has_promise, photograph, file = Classify(1, ""), True, False, None, None

    image: int
    due_s: float
    received_s: float = 0.0
    ended_s: float = math.inf
    policy: Policy | None = None
    run: RequestRun | None = None
    deadline_s: float | None = None
    was_near: bool = False

    def model_input(self, _: str) -> NDArray[np.float32]:
        """Return what has the engine find its recorded answer."""
        return np.full((1, 1, 1, 1), self.image, np.float32)

    @property
    def decision(self) -> Decision | None:
        """The answer, if there is one."""
        outcome = None if self.run is None else self.run.outcome
        return outcome if isinstance(outcome, Decision) else None


@dataclass(eq=False)
class Simulation:
    """A daemon that is asked in an open loop.

    asked: the policy of all requests, or the front from which it is chosen. limit_ms: their deadline, or the target.
    """

    device: Device
    asked: Policy | Front
    limit_ms: float
    seed: int
    time: VirtualTime = field(default_factory=VirtualTime)
    _socket: deque[Request] = field(default_factory=deque)
    _jobs: deque[Request] = field(default_factory=deque)
    _working: int = 0
    _is_over: bool = False

    def __post_init__(self) -> None:
        self._chance = np.random.default_rng(self.seed)
        self._idle: list[threading.Semaphore] = []
        device = self.device
        queues = {
            name: ModelQueue(name, _Recorded(name, self), device.temperatures.get(name, 1.0)) for name in device.logits
        }
        for name, queue in queues.items():
            mean_ms = device.times.models_ms[name]
            queue.prior_ms = mean_ms, RELATIVE_DEVIATION * mean_ms
        self.driver = Driver(queues, now=self.time.now, timers=Timers())
        self.admission = Admission(ServerSettings(), device.workers, self.time.now)

    def answer(self, due_s: Sequence[float], images: Sequence[int]) -> list[Request]:
        """Send each request when it is due, and return what became of all."""
        requests = [Request(image, at_s) for image, at_s in zip(images, due_s, strict=True)]

        def arrive() -> None:
            for request in requests:
                self.time.sleep(request.due_s - self.time.now())
                self._socket.append(request)
                self._rouse()
            while self._socket or self._jobs or self._working:
                self.time.sleep(0.1)
            self._is_over = True
            self._rouse(len(self._idle))

        self.time.run(arrive, *[self._work] * self.device.workers)
        return requests

    def _rouse(self, most: int = 1) -> None:
        for _ in range(min(most, len(self._idle))):
            self.time.wake_at(self.time.now(), self._idle.pop())

    def _work(self) -> None:
        """Do as a thread of the WorkerPool does."""
        while not self._is_over:
            if self._jobs:
                self._working += 1
                share = batch_share(len(self._jobs), self.device.workers - self._working + 1)
                self._carry([self._jobs.popleft() for _ in range(share)])
                self._working -= 1
                if self._jobs:
                    self._take_in(len(self._socket))
            elif self._socket:
                self._take_in(MOST_JOBS)
            else:
                self._idle.append(self.time.turn())
                self.time.pause()

    def _take_in(self, most: int) -> None:
        for _ in range(most):
            if not self._socket:  # another worker may have taken the rest meanwhile
                return
            request = self._socket.popleft()
            self._working += 1
            self.time.sleep(self.device.times.message_ms / 1e3)
            self._working -= 1
            request.received_s = self.time.now()
            try:
                request.was_near = self._admit()
            except JetselError:
                request.ended_s = self.time.now()
                continue
            self._jobs.append(request)
            self._rouse()

    def _admit(self) -> bool:
        asked = self.asked
        paths = [point.policy for point in asked.points] if isinstance(asked, Front) else [asked]
        floor_ms, _ = self.driver.least_times_ms(*paths)
        is_front = isinstance(asked, Front)
        return self.admission.admit(
            _LOAD,
            None if is_front else self.limit_ms,
            floor_ms,
            target_ms=self.limit_ms if is_front else None,
            adapts=is_front or isinstance(asked, Deadline),
        )

    def _carry(self, requests: list[Request]) -> None:
        runs = []
        for request in requests:
            allowed = self._allowed()
            self.time.sleep(self.device.times.around_ms / 1e3)
            runs.append(self._started(request, allowed))
        for run in self.driver.continue_runs(*runs):
            assert isinstance(run.request, Request)
            self._finish(run.request)

    def _allowed(self) -> Allowance:
        if isinstance(self.asked, Front | Deadline):
            admission, workers = self.admission, self.device.workers
            return Allowance(allowed_ms(self.limit_ms, admission.in_queue, workers, admission.overhead_ms))
        return UNLIMITED

    def _started(self, request: Request, allowed: Allowance) -> RequestRun:
        limit_s = request.received_s + self.limit_ms / 1e3
        now_s, queues = self.time.now(), self.driver.queues
        ahead = outlook(queues, limit_s, now_s, SentImage((0, 0), None), allowed)
        is_front = isinstance(self.asked, Front)
        request.policy = self.asked.select_now(ahead).policy if isinstance(self.asked, Front) else self.asked
        request.deadline_s = None if is_front else limit_s
        run = RequestRun(None, None, ahead, policy=request.policy, request=request)
        request.run = run
        self.driver.start(run)
        return run

    def _finish(self, request: Request) -> None:
        request.ended_s = self.time.now()
        run = request.run
        assert run is not None
        models_ms = sum(ran.latency_ms / ran.batch for ran in run.ran)
        limit_share = (request.ended_s - request.received_s) * 1e3 / self.limit_ms if request.was_near else None
        around_ms = self.device.times.around_ms
        work = Work(around_ms + models_ms, models_ms, limit_share) if request.decision else None
        self.admission.release(_LOAD, work)

    def run_ms(self, model: str) -> float:
        """Draw what one run of a model takes for one image."""
        mean_ms = self.device.times.models_ms[model]
        return max(0.0, float(self._chance.normal(mean_ms, SPREAD * mean_ms)))


_LOAD = Load(next(iter(TRUSTED)), 0, 0)


class _Recorded:
    """A model that takes its time and answers what was recorded. See Engine."""

    max_batch, unavailable = None, None
    is_restarting, is_stale, restart_s = False, False, 0.0

    def __init__(self, name: str, simulation: Simulation) -> None:
        self.name, self.caller_limiter, self._simulation = name, CallerLimiter(), simulation
        self.concurrency = simulation.device.workers

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        images = np.concatenate(parts)[:, 0, 0, 0].astype(int)
        self._simulation.time.sleep(sum(map(self._simulation.run_ms, [self.name] * len(images))) / 1e3)
        return Output(self._simulation.device.logits[self.name][images], None, None)

    def close(self) -> None:
        """Hold nothing."""


def recorded_logits(
    family: ConfiguredFamily, models: Sequence[str], files: Sequence[bytes]
) -> dict[str, NDArray[np.float32]]:
    """Return what each of these models answers about each image, (n, classes)."""
    found = {}
    for name in models:
        model = family.models[name]
        engine = OnnxEngine(name, model.path, concurrency=1, threads=len(os.sched_getaffinity(0)))
        spec, needed_px = model.manifest.input, family.family.decode_px
        inputs = (image.model_input(image.decode(data, LIMITS, needed_px), spec) for data in files)
        found[name] = np.concatenate([engine.infer(one).logits for one in inputs])
        engine.close()
    return found
