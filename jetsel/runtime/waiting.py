"""The runs that wait for models, and which of them go out together when an engine is free."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from jetsel.engines import Place
from jetsel.runtime.model_queue import ModelQueue
from jetsel.runtime.request_run import RequestRun


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
        assert run.asked is not None
        queue = self._queues[run.asked.models[0]]
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
