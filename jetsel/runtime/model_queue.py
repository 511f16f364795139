"""One model as the driver sees it: its engine or runner, a run of some images; and the runs that wait for models."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jetsel.base.errors import EngineDiedError, JetselError, ModelUnavailableError
from jetsel.engines import Engine, EngineFailedError, OnDemandEngine, Place
from jetsel.policies.policy import Prediction
from jetsel.runtime.model_times import ModelTimes
from jetsel.runtime.request_run import Handle, RequestRun
from jetsel.wire import Ran


class Traffic(NamedTuple):
    """What went over the network for one run."""

    sent_bytes: int
    received_bytes: int


class RemoteForecast(NamedTuple):
    """What a run elsewhere takes: mean and deviation in ms of the work there and of the way, traffic in 1,000 bytes.

    None for what is not known yet.
    """

    run_ms: tuple[float, float] | None
    way_ms: tuple[float, float] | None
    traffic_kb: float | None


Arrived: TypeAlias = Callable[[Prediction | JetselError, Traffic | None], None]
"""Called once with the result, from any thread, and at the earliest while `submit` is under way."""


class Runner(Protocol):
    """A place where models run without blocking the caller. It may be given the photograph as it was sent."""

    @property
    def unavailable(self) -> str | None:
        """Why no run can be had now, None if one can."""

    def expected(self, size_px: tuple[int, int], file_bytes: int | None, now_s: float) -> RemoteForecast:
        """Return what a run takes for an image of this width and height. file_bytes: None if it came as pixels."""

    def submit(self, model: str, run: RequestRun, arrived: Arrived) -> Handle:
        """Have this model look at the run's photograph. Never blocks nor raises: `arrived` receives what failed."""


LONGEST_ABSENCE_S = 30.0  # that a run waits for an engine that is being brought back: the first pauses and a slow load


@dataclass(eq=False)
class ModelQueue:
    """A model, the request runs that wait for it, and its times.

    temperature divides the logits (Guo et al. 2017, section 4.2). unavailable: why it did not load, None if it did.
    runner: of a model that runs elsewhere, which has no engine, and for which nothing waits here. prior_ms: calibrated
    mean and standard deviation of one run, None if there is no calibration.
    """

    model: str
    engine: Engine | None
    temperature: float = 1.0
    unavailable: str | None = None
    waiting: deque[RequestRun] = field(default_factory=deque)
    runner: Runner | None = None
    times: ModelTimes = field(default_factory=ModelTimes)
    prior_ms: tuple[float, float] | None = None

    @property
    def reason(self) -> str | None:
        """Why no run can be had now, None if one can."""
        if self.runner is not None:
            return self.runner.unavailable
        if self.engine is None:
            return self.unavailable or "it is not loaded"
        return self.engine.unavailable

    @property
    def serves(self) -> bool:
        """Whether it is loaded, and its engine there or on its way back."""
        return self.engine is not None and (self.engine.unavailable is None or self.engine.is_returning)

    @property
    def state(self) -> Literal["loading", "ready", "unloaded", "unavailable"]:
        """How the model stands, in one word."""
        if self.engine is None and self.runner is None and self.unavailable is None:
            return "loading"
        if self.reason is not None:
            return "unavailable"
        return "unloaded" if isinstance(self.engine, OnDemandEngine) and not self.engine.is_loaded else "ready"

    @property
    def load_ms(self) -> float | None:
        """What its last load took, None if it has no engine that is unloaded and loaded."""
        return self.engine.load_ms if isinstance(self.engine, OnDemandEngine) else None

    @property
    def load_due_ms(self) -> float:
        """How long it takes before a run can begin: what is left of the load of a model that is unloaded."""
        return self.engine.load_due_ms if isinstance(self.engine, OnDemandEngine) else 0.0

    def want(self) -> None:
        """Have a model that is unloaded loaded: someone asks for it, whether or not they can wait for that."""
        if isinstance(self.engine, OnDemandEngine):
            self.engine.want()

    def refusal(self) -> ModelUnavailableError:
        """The error for who asks for a run of a model that is away."""
        is_returning = self.engine is not None and self.engine.is_returning
        kind = EngineDiedError if is_returning else ModelUnavailableError
        return kind(f"{self.model} is unavailable: {self.reason}")

    def batch_limit(self, most: int) -> int:
        """How many runs may go out together: one if batches are no faster, `most` if the engine has no limit."""
        if isinstance(self.engine, OnDemandEngine) and not self.engine.gains_by_batches:
            return 1
        limit = self.engine.max_batch if self.engine is not None else None
        return most if limit is None else min(most, limit)

    def may_wait(self, run: RequestRun, now_s: float) -> bool:
        """Whether a run may still be had in time from an engine that is away."""
        if self.engine is None:
            return False
        if self.engine.unavailable is not None and not self.engine.is_returning:
            return False  # one that is back already may be waited for, too
        if (deadline_s := run.request.deadline_s) is not None:
            return now_s + self.engine.returns_within_s + (self.times.percentile_ms(0.95) or 0.0) / 1e3 <= deadline_s
        return now_s - run.asked_s <= LONGEST_ABSENCE_S

    def expected_ms(self, share: float, now_s: float) -> float | None:
        """Return the expected percentile of the next run for one image, None if nothing is known."""
        return self.times.expected_ms(share, now_s, self.prior_ms)


def infer(queue: ModelQueue, runs: list[RequestRun], now: Callable[[], float]) -> list[tuple[Prediction, Ran]]:
    """Run the model on the photographs of these runs, as one batch. Raises as Engine.infer does."""
    assert queue.engine is not None
    begun_s = now()
    inputs = [run.request.model_input(queue.model) for run in runs]
    began_s = now()
    logits, embeddings, device_ms = queue.engine.infer(*inputs)
    took_ms = (now() - began_s) * 1e3
    if not math.isfinite(np.add.reduce(logits, axis=None)):  # one number that is not makes the sum so
        raise EngineFailedError("it returned numbers that are not finite")
    results = []
    for number, run in enumerate(runs):
        embedding = None if embeddings is None else embeddings[number]
        prediction = predict(queue.model, logits[number], queue.temperature, embedding)
        requested, because = run.pending, ""  # None: it is not waited for any more
        if requested is not None:
            because = requested.because
            run.stages.waiting = (run.stages.waiting or 0.0) + (begun_s - run.asked_s) * 1e3
        results.append((prediction, Ran(queue.model, because, prediction.confidence, took_ms, len(runs), device_ms)))
    return results


def predict(
    model: str,
    logits: NDArray[np.float32],
    temperature: float,
    embedding: NDArray[np.float32] | None = None,
) -> Prediction:
    """Turn logits (classes,) into probabilities at the model's temperature, and read its confidence."""
    scaled = logits / temperature
    scaled -= np.maximum.reduce(scaled)
    probabilities = np.exp(scaled, scaled)
    total = np.add.reduce(probabilities)
    probabilities /= total
    return Prediction(model, probabilities, float(1 / total), embedding)  # the largest scaled logit is 0


class Batch(Struct, frozen=True, eq=False):
    """Runs of one model that go out together. place: counts them; None if nothing does."""

    queue: ModelQueue
    runs: list[RequestRun]
    place: Place | None

    def ids(self) -> tuple[str, ...]:
        """The requests whose runs these are."""
        return tuple(run.request.message.id for run in self.runs)


class Waiting:
    """The queues of a family's models. Every method may be called from any thread."""

    def __init__(self, queues: Mapping[str, ModelQueue], max_batch: int, now: Callable[[], float]) -> None:
        self._queues = queues
        self._max_batch = max_batch
        self._now = now
        self._lock = threading.Lock()
        self._count = 0  # runs in all queues

    def __bool__(self) -> bool:
        """Whether a run waits for a model."""
        return self._count > 0

    def at_once(self, run: RequestRun) -> Batch | None:
        """Return the run of the one model that was asked for if its engine is free and nobody waits for it."""
        assert run.pending is not None
        queue = self._queues[run.pending.models[0]]
        engine = queue.engine
        if not queue.waiting and engine is not None and engine.unavailable is None:
            place = engine.place
            if place is None or place.enter(engine.concurrency):
                return Batch(queue, [run], place)
        return None

    def put(self, run: RequestRun, models: Sequence[str]) -> None:
        """Put a run into the queues of these models."""
        with self._lock:
            for model in models:
                self._queues[model].waiting.append(run)
                self._count += 1

    def remove(self, run: RequestRun, models: Sequence[str]) -> None:
        """Take a run out of the queues of those of these models that it still waits for."""
        with self._lock:
            for model in models:
                waiting = self._queues[model].waiting
                if run in waiting:  # not `remove` alone: its error has the run's representation, photograph and all
                    waiting.remove(run)
                    self._count -= 1

    def put_back(self, queue: ModelQueue, runs: list[RequestRun]) -> None:
        """Put runs back in front of a queue, in their order."""
        with self._lock:
            queue.waiting.extendleft(reversed(runs))
            self._count += len(runs)

    def take(self) -> Batch | None:
        """Return the waiting runs of one model that may go out now, the oldest first; None if none can."""
        if not self._count:  # read without the lock: who adds a run looks for it afterwards
            return None
        with self._lock:
            due = [queue for queue in self._queues.values() if queue.waiting and queue.reason is None]
            due.sort(key=lambda queue: queue.waiting[0].asked_s)  # no queue starves behind a cheaper model's
            for queue in due:
                engine = queue.engine
                place = None if engine is None else engine.place  # read once: a model may be loaded meanwhile
                if engine is not None and (place is None or place.enter(engine.concurrency)):
                    return Batch(queue, self._gather(queue), place)
            return self._abandon()

    def _gather(self, queue: ModelQueue) -> list[RequestRun]:
        """Take the queue's first runs as one batch that no deadline among them is hurt by."""
        taken: list[RequestRun] = []
        soonest_s: float | None = None
        most = queue.batch_limit(self._max_batch)
        while queue.waiting and len(taken) < most:
            deadline_s = queue.waiting[0].request.deadline_s
            if deadline_s is not None:
                soonest_s = deadline_s if soonest_s is None else min(soonest_s, deadline_s)
            if taken and soonest_s is not None:
                batch_ms = (queue.times.percentile_ms(0.95) or 0.0) * (len(taken) + 1)
                if self._now() + batch_ms / 1e3 > soonest_s:
                    break
            taken.append(queue.waiting.popleft())
            self._count -= 1
        return taken

    def _abandon(self) -> Batch | None:
        """Return the runs of one model that its engine, which is away, cannot do in time any more; they will fail."""
        now_s = self._now()
        for queue in self._queues.values():
            if not queue.waiting or queue.reason is None:
                continue
            late = [run for run in queue.waiting if not queue.may_wait(run, now_s)]
            if late:
                queue.waiting = deque(run for run in queue.waiting if run not in late)
                self._count -= len(late)
                return Batch(queue, late, None)
        return None
