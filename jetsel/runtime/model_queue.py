"""One model as the driver sees it: its engine or runner, and the queue of runs that wait for it."""

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
from jetsel.engines import CallerLimiter, Engine, EngineFailedError, OnDemandEngine
from jetsel.policies.policy import Prediction
from jetsel.runtime.model_times import ModelTimes
from jetsel.runtime.request_run import RequestRun
from jetsel.wire import Ran


class SentImage(NamedTuple):
    """An image as the client sent it. size_px: its width and height.

    file_bytes: size of its file, None for raw pixels. stays_here: True if the client forbids to send it elsewhere.
    """

    size_px: tuple[int, int]
    file_bytes: int | None
    stays_here: bool = False


class RemoteForecast(NamedTuple):
    """Forecast of a run on the edge server; a value is None until it has been measured.

    run_ms, network_ms: mean and deviation of the run there, and of the round trip. traffic_kb: 1,000 bytes, both ways.
    """

    run_ms: tuple[float, float] | None
    network_ms: tuple[float, float] | None
    traffic_kb: float | None


ResultCallback: TypeAlias = Callable[[Prediction | JetselError, int | None, int | None], None]
"""Takes a remote result, and the bytes sent and received; called once, in any thread, even before `submit` ends."""


class Runner(Protocol):
    """Runs a model elsewhere, on the edge server, without blocking the caller."""

    @property
    def unavailable(self) -> str | None:
        """Why the model cannot run now, None if it can."""

    def forecast(self, sent: SentImage, now_s: float) -> RemoteForecast:
        """Return the expected times and bytes for an image."""

    def submit(self, model: str, run: RequestRun, on_result: ResultCallback) -> Callable[[], None]:
        """Send the image of a run to the model, and return a function that cancels it.

        Never blocks or raises: `on_result` gets the prediction or the error, perhaps even after the cancellation.
        """


LONGEST_RESTART_S = 30.0  # a run without a deadline waits this long for an engine that restarts and loads slowly


@dataclass(eq=False)
class ModelQueue:
    """A model, the runs that wait for it, and its times.

    engine: None until it is loaded, and for a remote model, which has a runner instead and no waiting runs.
    temperature: divides the logits (Guo et al. 2017, section 4.2). unavailable: why it did not load. prior_ms: mean and
    standard deviation of one run according to the calibration, None without one.
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
        """Why the model cannot run now, None if it can."""
        if self.runner is not None:
            return self.runner.unavailable
        if self.engine is None:
            return self.unavailable or "it is not loaded"
        return self.engine.unavailable

    @property
    def serves(self) -> bool:
        """Whether its engine runs, or is being restarted after it died."""
        return self.engine is not None and (self.engine.unavailable is None or self.engine.is_restarting)

    @property
    def state(self) -> Literal["loading", "ready", "unloaded", "unavailable"]:
        """State of the model for the status; an `unloaded` one is loaded again by the next request that needs it."""
        if self.engine is None and self.runner is None and self.unavailable is None:
            return "loading"
        if self.reason is not None:
            return "unavailable"
        return "unloaded" if isinstance(self.engine, OnDemandEngine) and not self.engine.is_loaded else "ready"

    @property
    def load_ms(self) -> float | None:
        """Time in ms that the last load took, None if the engine is never unloaded."""
        return self.engine.load_ms if isinstance(self.engine, OnDemandEngine) else None

    @property
    def load_due_ms(self) -> float:
        """Time in ms that the rest of the load will take if the model is not loaded, else 0."""
        return self.engine.load_due_ms if isinstance(self.engine, OnDemandEngine) else 0.0

    def request_load(self) -> None:
        """Begin to load the model if it is unloaded."""
        if isinstance(self.engine, OnDemandEngine):
            self.engine.request_load()

    def refusal(self) -> ModelUnavailableError:
        """Return the error for a run while the model is unavailable; its code says whether a retry may help."""
        is_restarting = self.engine is not None and self.engine.is_restarting
        error_type = EngineDiedError if is_restarting else ModelUnavailableError
        return error_type(f"{self.model} is unavailable: {self.reason}")

    def batch_limit(self, max_batch: int) -> int:
        """Return how many runs may form a batch: at most max_batch, and one if the engine gains nothing by batches."""
        if isinstance(self.engine, OnDemandEngine) and not self.engine.gains_by_batches:
            return 1
        limit = self.engine.max_batch if self.engine is not None else None
        return max_batch if limit is None else min(max_batch, limit)

    def may_wait(self, run: RequestRun, now_s: float) -> bool:
        """Whether the engine, which may have died, is expected to run again before this run's deadline."""
        if self.engine is None:
            return False
        if self.engine.unavailable is not None and not self.engine.is_restarting:
            return False  # an engine that has just returned counts too
        if (deadline_s := run.request.deadline_s) is not None:
            return now_s + self.engine.restart_s + (self.times.percentile_ms(0.95) or 0.0) / 1e3 <= deadline_s
        return now_s - run.requested_s <= LONGEST_RESTART_S

    def expected_ms(self, percentile: float, now_s: float) -> float | None:
        """Return a percentile (0 to 1) of the next run's expected time for one image, None if nothing is known."""
        return self.times.expected_ms(percentile, now_s, self.prior_ms)


def infer(queue: ModelQueue, runs: list[RequestRun], now: Callable[[], float]) -> list[tuple[Prediction, Ran]]:
    """Run the model on these runs' images as one batch; return each prediction and its entry in the answer's `ran`.

    Raises as Engine.infer does.
    """
    assert queue.engine is not None
    waited_until_s = now()
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
        requested, because = run.pending, ""  # None: the policy went on without this result
        if requested is not None:
            because = requested.because
            run.stages.waiting = (run.stages.waiting or 0.0) + (waited_until_s - run.requested_s) * 1e3
        results.append((prediction, Ran(queue.model, because, prediction.confidence, took_ms, len(runs), device_ms)))
    return results


def predict(
    model: str, logits: NDArray[np.float32], temperature: float, embedding: NDArray[np.float32] | None = None
) -> Prediction:
    """Return the prediction of a model: the softmax of its logits (classes,) divided by the temperature."""
    scaled = logits / temperature
    scaled -= np.maximum.reduce(scaled)
    probabilities = np.exp(scaled, scaled)
    total = np.add.reduce(probabilities)
    probabilities /= total
    return Prediction(model, probabilities, float(1 / total), embedding)  # 1 / total is the largest: exp(0)


class Batch(Struct, frozen=True, eq=False):
    """Runs that a model does together. caller_limiter: counts the engine's callers, this batch too; None: no limit."""

    queue: ModelQueue
    runs: list[RequestRun]
    caller_limiter: CallerLimiter | None

    def ids(self) -> tuple[str, ...]:
        """Return the ids of the requests."""
        return tuple(run.request.message.id for run in self.runs)


class WaitingRuns:
    """Puts runs into the queues of a family's models, and takes batches of them out. Any thread may call."""

    def __init__(self, queues: Mapping[str, ModelQueue], max_batch: int, now: Callable[[], float]) -> None:
        self._queues = queues
        self._max_batch = max_batch
        self._now = now
        self._lock = threading.Lock()
        self._count = 0  # runs in all queues

    def __bool__(self) -> bool:
        return self._count > 0

    def claim_engine(self, run: RequestRun) -> Batch | None:
        """Return the run as a batch that enters its model's engine at once; None if it must wait in the queue."""
        assert run.pending is not None
        queue = self._queues[run.pending.models[0]]
        engine = queue.engine
        if not queue.waiting and engine is not None and engine.unavailable is None:
            limiter = engine.caller_limiter
            if limiter is None or limiter.enter(engine.concurrency):
                return Batch(queue, [run], limiter)
        return None

    def enqueue(self, run: RequestRun, models: Sequence[str]) -> None:
        """Put a run at the end of the queues of these models."""
        with self._lock:
            for model in models:
                self._queues[model].waiting.append(run)
                self._count += 1

    def remove(self, run: RequestRun, models: Sequence[str]) -> None:
        """Take a run out of the queues of these models that still have it."""
        with self._lock:
            for model in models:
                waiting = self._queues[model].waiting
                if run in waiting:  # `remove` alone would put the run's text, image included, into its error
                    waiting.remove(run)
                    self._count -= 1

    def requeue(self, queue: ModelQueue, runs: list[RequestRun]) -> None:
        """Put runs back to the front of a queue, in their order."""
        with self._lock:
            queue.waiting.extendleft(reversed(runs))
            self._count += len(runs)

    def next_batch(self) -> Batch | None:
        """Return a batch of waiting runs that enters a free engine, or of runs that must fail; None: all must wait."""
        if not self._count:  # read without the lock, because a thread that adds a run calls `next_batch` afterwards
            return None
        with self._lock:
            ready = [queue for queue in self._queues.values() if queue.waiting and queue.reason is None]
            # The longest wait first, so that no queue starves behind a cheaper model's.
            ready.sort(key=lambda queue: queue.waiting[0].requested_s)
            for queue in ready:
                engine = queue.engine
                limiter = None if engine is None else engine.caller_limiter  # read once: it may be loaded meanwhile
                if engine is not None and (limiter is None or limiter.enter(engine.concurrency)):
                    return Batch(queue, self._pop_batch(queue), limiter)
            return self._pop_overdue()

    def _pop_batch(self, queue: ModelQueue) -> list[RequestRun]:
        """Take the first runs out of a queue, as many as one batch can hold without missing a deadline of theirs."""
        taken: list[RequestRun] = []
        soonest_s: float | None = None
        limit = queue.batch_limit(self._max_batch)
        while queue.waiting and len(taken) < limit:
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
        """Return the runs of one queue that cannot wait for their engine's restart, as a batch, which will fail."""
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
