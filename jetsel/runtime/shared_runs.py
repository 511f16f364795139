"""Runs that get results from several threads: several models at a time, a deadline's timer, or a remote model.

A result comes from the thread that ran a model, or from a runner's thread; or the deadline's timer fires. The first
that lets the policy go on cancels the others, under the lock. Then the thread that has the run carries it, or any
thread that takes it from `returned`. All drivers of a daemon share one heap of timers and one thread, which sleeps
until the earliest timer. The first timer starts it, so a daemon without remote models has neither.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from jetsel.base.errors import JetselError
from jetsel.base.events import event
from jetsel.policies.policy import OutOfTime, Prediction, Run
from jetsel.runtime.advance import advance
from jetsel.runtime.model_queue import ModelQueue, WaitingRuns
from jetsel.runtime.request_run import RequestRun
from jetsel.wire import Ran

log = logging.getLogger("jetsel.daemon")


class Timer:
    """Calls a function at a set time, unless it is cancelled before."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Drop the function, so that nothing is called or kept alive."""
        self.call = None


class Timers:
    """Calls functions at set times, in its own thread. Any thread may call.

    wake: wakes a worker thread, which continues the runs that were resumed.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()  # order of timers with the same time
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def call_at(self, time_s: float, call: Callable[[], None]) -> Timer:
        """Call `call` at time_s of time.monotonic(), in the timers' thread."""
        timer = Timer(call)
        with self._changed:
            heapq.heappush(self._heap, (time_s, next(self._numbers), timer))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
                self._thread.start()
            elif self._heap[0][2] is timer:
                self._changed.notify()
        return timer

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._heap or (left_s := self._heap[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left_s if self._heap else None)
                timer = heapq.heappop(self._heap)[2]
            call = timer.call
            if call is not None:
                try:
                    call()
                except Exception:  # a defect in one timer must not stop the others
                    log.exception("a timer failed because of a defect; later timers run", extra=event("timer-failed"))


ANSWER_TIME_S = 0.002  # before a deadline, when the policy must go on: time to build and send the answer


class SharedRuns:
    """The shared runs of one driver. Any thread may call.

    returned: resumed runs that a thread must carry on; read without the lock. unused: called with a model that ran
    after its policy had gone on.
    """

    def __init__(
        self, queues: Mapping[str, ModelQueue], waiting: WaitingRuns, timers: Timers, now: Callable[[], float]
    ) -> None:
        """timers: must use the clock `now`; its `wake` is called when a thread is needed."""
        self._queues = queues
        self._waiting = waiting
        self._timers = timers
        self._now = now
        self._lock = threading.Lock()
        self.resumed: deque[RequestRun] = deque()
        self.on_unused_result: Callable[[str], None] = lambda _: None

    def pop_resumed(self) -> list[RequestRun]:
        """Return the runs that were resumed by others: they have ended, or request other models."""
        returned: list[RequestRun] = []
        while self.resumed:
            with contextlib.suppress(IndexError):  # another thread took it
                returned.append(self.resumed.popleft())
        return returned

    def start_models(self, run: RequestRun) -> None:
        """Start every requested model: queue it on this device, or submit it to its runner."""
        request, shared, deadline_s = run.pending, run.shared, run.request.deadline_s
        assert request is not None
        assert shared is not None
        here = [model for model in request.models if self._queues[model].runner is None]
        if request.until != "deadline" or deadline_s is None:
            self._queue_models(run, request, here)
        elif request.held_ms is None or len(here) == len(request.models):
            shared.cancellations.append(self._time_limit(run, request, deadline_s))
            self._queue_models(run, request, here)
        else:
            shared.is_held = True
            held_s = deadline_s - ANSWER_TIME_S - request.held_ms / 1e3
            shared.cancellations.append(self._timers.call_at(held_s, partial(self._queue_held, run, request)).cancel)
        for model in request.models:
            runner = self._queues[model].runner
            if runner is None or run.pending is not request:
                continue
            cancel = runner.submit(model, run, partial(self._take_remote_result, run, request, model, self._now()))
            with self._lock:
                if is_wanted := run.pending is request:
                    shared.cancellations.append(cancel)
            if not is_wanted:
                cancel()

    def _time_limit(self, run: RequestRun, request: Run, deadline_s: float) -> Callable[[], None]:
        return self._timers.call_at(deadline_s - ANSWER_TIME_S, partial(self._end_at_deadline, run, request)).cancel

    def _queue_models(self, run: RequestRun, request: Run, here: list[str]) -> None:
        with self._lock:
            if run.pending is request:  # no result came before
                self._waiting.enqueue(run, here)

    def _queue_held(self, run: RequestRun, request: Run) -> None:
        """Queue the runs that were held back: remote results are late or failed."""
        shared, deadline_s = run.shared, run.request.deadline_s
        assert shared is not None
        assert deadline_s is not None
        with self._lock:
            if run.pending is not request or not shared.is_held:
                return
            shared.is_held = False
            shared.cancellations.append(self._time_limit(run, request, deadline_s))
            self._waiting.enqueue(run, [model for model in request.models if self._queues[model].runner is None])
        self._timers.wake()

    def _take_remote_result(
        self,
        run: RequestRun,
        request: Run,
        model: str,
        begun_s: float,
        result: Prediction | JetselError,
        sent_bytes: int | None,
        received_bytes: int | None,
    ) -> None:
        """Take the result of a runner."""
        took_ms = (self._now() - begun_s) * 1e3
        ran = None
        if isinstance(result, Prediction):
            ran = Ran(model, request.because, result.confidence, took_ms, 1, None, sent_bytes, received_bytes)
        try:
            goes_on = self.take_result(run, model, result, ran)
        except Exception as error:  # a defect ends the run, not the runner's thread
            run.outcome, goes_on = error, True
        if run.request.is_counted and ran is not None:
            self._queues[model].times.add_batch(
                took_ms, 1, self._now(), escalations=int(goes_on and run.outcome is None)
            )
        if goes_on:
            self.resumed.append(run)
            self._timers.wake()
        elif ran is None and run.shared is not None and run.shared.is_held:
            self._queue_held(run, request)

    def _end_at_deadline(self, run: RequestRun, request: Run) -> None:
        """Resume a policy at its deadline with the results so far, or with OutOfTime if there are none."""
        with self._lock:
            if run.pending is not request:
                return
            results = self._stop_waiting(run, request)
        try:
            self._resume(run, results, OutOfTime("no answer came before the deadline"))
        except Exception as error:  # as above
            run.outcome = error
        self.resumed.append(run)
        self._timers.wake()

    def take_result(
        self, run: RequestRun, model: str, result: Prediction | JetselError, ran: Ran | None = None
    ) -> bool:
        """Give a run one result, and resume its policy if it needs no other; return whether it was resumed.

        It is not resumed while results are missing, or if an earlier result was enough. ran: None for an error.
        """
        shared = run.shared
        assert shared is not None
        with self._lock:
            if (request := run.pending) is None or model not in request.models or model in shared.results:
                if isinstance(result, Prediction):
                    self.on_unused_result(model)
                return False
            shared.results[model] = result
            is_enough = False
            if isinstance(result, Prediction):
                assert ran is not None
                run.ran.append(ran)
                run.best = result
                is_enough = request.until == "first" or (request.until == "deadline" and model == request.models[-1])
            if not is_enough and len(shared.results) < len(request.models):
                return False
            results = self._stop_waiting(run, request)
        failed = next((result for result in results if not isinstance(result, Prediction)), None)
        self._resume(run, [] if failed and request.until == "all" else results, failed)
        return True

    def _resume(self, run: RequestRun, results: list[Prediction | JetselError], otherwise: Exception | None) -> None:
        """Send the predictions to the policy; throw `otherwise` if there are none."""
        assert run.steps is not None
        if good := tuple(result for result in results if isinstance(result, Prediction)):
            advance(self._queues, self._now, run, run.steps.send, good)
        else:
            advance(self._queues, self._now, run, run.steps.throw, otherwise)

    def _stop_waiting(self, run: RequestRun, request: Run) -> list[Prediction | JetselError]:
        """Stop what a run waits for; return its results in the order of the request. The caller holds the lock."""
        shared = run.shared
        assert shared is not None
        run.pending, shared.is_held = None, False
        results = [shared.results.pop(name) for name in request.models if name in shared.results]
        if len(results) < len(request.models):
            self._waiting.remove(run, request.models)
        for cancel in shared.cancellations:
            cancel()
        shared.cancellations.clear()
        return results
