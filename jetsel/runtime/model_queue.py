"""One model as the driver sees it: its engine or runner, and the runs that wait for it."""

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
from jetsel.runtime.request_run import RequestRun
from jetsel.wire import Ran


class SentImage(NamedTuple):
    """An image as a client sent it: its width and height, and the bytes of its file, None if it came as pixels.

    stays_here: whether it may not leave this device.
    """

    size_px: tuple[int, int]
    file_bytes: int | None
    stays_here: bool = False


class RemoteForecast(NamedTuple):
    """Forecast of a remote run; None: not known yet.

    run_ms, network_ms: mean and deviation of the run, and of the way there and back. traffic_kb: in 1,000 bytes.
    """

    run_ms: tuple[float, float] | None
    network_ms: tuple[float, float] | None
    traffic_kb: float | None


ResultCallback: TypeAlias = Callable[[Prediction | JetselError, int | None, int | None], None]
"""Called once, from any thread, perhaps before `submit` returns: with the result, and the bytes sent and received."""


class Runner(Protocol):
    """Runs models elsewhere without blocking the caller; it may receive the image as it was sent."""

    @property
    def unavailable(self) -> str | None:
        """Return why no model can run now, None if one can."""

    def forecast(self, sent: SentImage, now_s: float) -> RemoteForecast:
        """Return the forecast for an image."""

    def submit(self, model: str, run: RequestRun, arrived: ResultCallback) -> Callable[[], None]:
        """Send the run's image to the model; return what cancels it, after which its result may still arrive.

        Never blocks or raises: `arrived` receives errors.
        """


LONGEST_RESTART_S = 30.0  # that a run waits for an engine that restarts: the first pauses and a slow load


@dataclass(eq=False)
class ModelQueue:
    """A model, the runs that wait for it, and its times.

    temperature divides the logits (Guo et al. 2017, section 4.2). unavailable: why it did not load. runner: runs a
    remote model, which has neither engine nor waiting runs. prior_ms: calibrated mean and standard deviation of one
    run, None if there is no calibration.
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
        """Return why the model cannot run now, None if it can."""
        if self.runner is not None:
            return self.runner.unavailable
        if self.engine is None:
            return self.unavailable or "it is not loaded"
        return self.engine.unavailable

    @property
    def serves(self) -> bool:
        """Whether it is loaded, and its engine runs or is restarting."""
        return self.engine is not None and (self.engine.unavailable is None or self.engine.is_returning)

    @property
    def state(self) -> Literal["loading", "ready", "unloaded", "unavailable"]:
        """State of the model in one word."""
        if self.engine is None and self.runner is None and self.unavailable is None:
            return "loading"
        if self.reason is not None:
            return "unavailable"
        return "unloaded" if isinstance(self.engine, OnDemandEngine) and not self.engine.is_loaded else "ready"

    @property
    def load_ms(self) -> float | None:
        """Time of the last load in ms, None if its engine is never unloaded."""
        return self.engine.load_ms if isinstance(self.engine, OnDemandEngine) else None

    @property
    def load_due_ms(self) -> float:
        """Time in ms before a run can begin: the rest of the load if the model is unloaded, else 0."""
        return self.engine.load_due_ms if isinstance(self.engine, OnDemandEngine) else 0.0

    def request_load(self) -> None:
        """Begin to load the model if it is unloaded."""
        if isinstance(self.engine, OnDemandEngine):
            self.engine.request_load()

    def refusal(self) -> ModelUnavailableError:
        """Return the error for a run of a model that is unavailable."""
        is_returning = self.engine is not None and self.engine.is_returning
        kind = EngineDiedError if is_returning else ModelUnavailableError
        return kind(f"{self.model} is unavailable: {self.reason}")

    def batch_limit(self, most: int) -> int:
        """Return how many runs may form a batch: one if batches are no faster, `most` if the engine has no limit."""
        if isinstance(self.engine, OnDemandEngine) and not self.engine.gains_by_batches:
            return 1
        limit = self.engine.max_batch if self.engine is not None else None
        return most if limit is None else min(most, limit)

    def may_wait(self, run: RequestRun, now_s: float) -> bool:
        """Whether an engine that is away is expected back in time for this run."""
        if self.engine is None:
            return False
        if self.engine.unavailable is not None and not self.engine.is_returning:
            return False  # an engine that has just returned counts too
        if (deadline_s := run.request.deadline_s) is not None:
            return now_s + self.engine.returns_within_s + (self.times.percentile_ms(0.95) or 0.0) / 1e3 <= deadline_s
        return now_s - run.requested_s <= LONGEST_RESTART_S

    def expected_ms(self, share: float, now_s: float) -> float | None:
        """Return the expected percentile of the next run's time for one image, None if nothing is known."""
        return self.times.expected_ms(share, now_s, self.prior_ms)


def infer(queue: ModelQueue, runs: list[RequestRun], now: Callable[[], float]) -> list[tuple[Prediction, Ran]]:
    """Run the model on the images of these runs, as one batch. Raises as Engine.infer does."""
    assert queue.engine is not None
    begun_s = now()
    inputs = [run.request.model_input(queue.model) for run in runs]
    began_s = now()
    logits, embeddings, device_ms = queue.engine.infer(*inputs)
    took_ms = (now() - began_s) * 1e3
    if not math.isfinite(np.add.reduce(logits, axis=None)):  # one number that is not finite makes the sum so
        raise EngineFailedError("it returned numbers that are not finite")
    results = []
    for number, run in enumerate(runs):
        embedding = None if embeddings is None else embeddings[number]
        prediction = predict(queue.model, logits[number], queue.temperature, embedding)
        requested, because = run.pending, ""  # None: no longer waited for
        if requested is not None:
            because = requested.because
            run.stages.waiting = (run.stages.waiting or 0.0) + (begun_s - run.requested_s) * 1e3
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
    """Runs of one model that run together. place: counts them as one caller of the engine; None without a limit."""

    queue: ModelQueue
    runs: list[RequestRun]
    place: Place | None

    def ids(self) -> tuple[str, ...]:
        """Return the ids of the requests."""
        return tuple(run.request.message.id for run in self.runs)


class WaitingRuns:
    """The waiting runs of a family's models. Any thread may call."""

    def __init__(self, queues: Mapping[str, ModelQueue], max_batch: int, now: Callable[[], float]) -> None:
        self._queues = queues
        self._max_batch = max_batch
        self._now = now
        self._lock = threading.Lock()
        self._count = 0  # runs in all queues

    def __bool__(self) -> bool:
        """Whether a run waits for a model."""
        return self._count > 0

    def claim_engine(self, run: RequestRun) -> Batch | None:
        """Claim the engine of the run's model; return the run as a batch, None if others wait or it is not free."""
        assert run.pending is not None
        queue = self._queues[run.pending.models[0]]
        engine = queue.engine
        if not queue.waiting and engine is not None and engine.unavailable is None:
            place = engine.place
            if place is None or place.enter(engine.concurrency):
                return Batch(queue, [run], place)
        return None

    def enqueue(self, run: RequestRun, models: Sequence[str]) -> None:
        """Put a run into the queues of these models."""
        with self._lock:
            for model in models:
                self._queues[model].waiting.append(run)
                self._count += 1

    def remove(self, run: RequestRun, models: Sequence[str]) -> None:
        """Remove a run from the given queues; queues without it are skipped."""
        with self._lock:
            for model in models:
                waiting = self._queues[model].waiting
                if run in waiting:  # `remove` alone would put the run's text, image included, into its error
                    waiting.remove(run)
                    self._count -= 1

    def requeue(self, queue: ModelQueue, runs: list[RequestRun]) -> None:
        """Put runs back in front of a queue, in their order."""
        with self._lock:
            queue.waiting.extendleft(reversed(runs))
            self._count += len(runs)

    def next_batch(self) -> Batch | None:
        """Return the waiting runs of one model that can run now, the oldest first; None if there are none."""
        if not self._count:  # read without the lock, because a thread that adds a run calls `next_batch` afterwards
            return None
        with self._lock:
            due = [queue for queue in self._queues.values() if queue.waiting and queue.reason is None]
            # The longest wait first, so that no queue starves behind a cheaper model's.
            due.sort(key=lambda queue: queue.waiting[0].requested_s)
            for queue in due:
                engine = queue.engine
                place = None if engine is None else engine.place  # read once: a model may be loaded meanwhile
                if engine is not None and (place is None or place.enter(engine.concurrency)):
                    return Batch(queue, self._pop_batch(queue), place)
            return self._pop_overdue()

    def _pop_batch(self, queue: ModelQueue) -> list[RequestRun]:
        """Take the queue's first runs as one batch, as long as no run in it misses its deadline."""
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

    def _pop_overdue(self) -> Batch | None:
        """Return the runs of one model whose engine will not be back in time; they will fail."""
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
