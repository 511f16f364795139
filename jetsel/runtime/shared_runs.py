"""Runs that get results from several threads: several models at a time, a deadline's timer, or a remote model.

A result comes from the thread that ran a model, or from a runner's thread; or the deadline's timer fires. The first
that lets the policy go on cancels the others, under the lock. Then the thread that delivered it continues the run, or
any thread that takes it from `resumed`. All drivers of a daemon share one heap of timers and one thread, which sleeps
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
    """A function to call at a set time; `cancel` prevents the call."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Drop the function, so that it is not called and the run that it refers to is freed."""
        self.callback = None


class Timers:
    """Calls functions at set times, in its own thread. Any thread may call.

    wake: wakes a thread of the daemon's worker pool to call `Driver.continue_runs`, after a run was resumed.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()  # order of timers with the same time
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def call_at(self, time_s: float, callback: Callable[[], None]) -> Timer:
        """Call a function at time_s of time.monotonic(), in the timers' thread; return its timer, to cancel it."""
        timer = Timer(callback)
        with self._changed:
            heapq.heappush(self._heap, (time_s, next(self._numbers), timer))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
                self._thread.start()
            elif self._heap[0][2] is timer:
                self._changed.notify()
        return timer

    def _run(self) -> None:
        """Call each timer's function at its time, in the timers' thread, until the process ends."""
        while True:
            with self._changed:
                while not self._heap or (left_s := self._heap[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left_s if self._heap else None)
                timer = heapq.heappop(self._heap)[2]
            callback = timer.callback
            if callback is not None:
                try:
                    callback()
                except Exception:  # a defect in one timer must not stop the others
                    log.exception("a timer failed because of a defect; later timers run", extra=event("timer-failed"))


ANSWER_TIME_S = 0.002  # a policy is resumed this long before a deadline: time to build and send the answer


class SharedRuns:
    """Runs of one driver that several threads bring results for. Any thread may call.

    resumed: runs that a thread must continue; read without the lock. on_unused_result: called with the name of a model
    whose result came after the policy had gone on without it, to count its energy. request, in the methods: what the
    policy requested; if run.pending is not this any more, the policy has gone on.
    """

    def __init__(
        self, queues: Mapping[str, ModelQueue], waiting: WaitingRuns, timers: Timers, now: Callable[[], float]
    ) -> None:
        """timers: must use the clock `now`, in s; its `wake` is called when a thread must continue a resumed run."""
        self._queues = queues
        self._waiting = waiting
        self._timers = timers
        self._now = now
        self._lock = threading.Lock()
        self.resumed: deque[RequestRun] = deque()
        self.on_unused_result: Callable[[str], None] = lambda _: None

    def pop_resumed(self) -> list[RequestRun]:
        """Take the runs that timers and runners have resumed: they have ended, or request other models."""
        runs: list[RequestRun] = []
        while self.resumed:
            with contextlib.suppress(IndexError):  # another thread took it
                runs.append(self.resumed.popleft())
        return runs

    def start_models(self, run: RequestRun) -> None:
        """Start each model that a run's policy has requested: queue it on this device, or submit it to its runner."""
        request, shared, deadline_s = run.pending, run.shared, run.request.deadline_s
        assert request is not None
        assert shared is not None
        local_models = self._local_models(request)
        if request.until != "deadline" or deadline_s is None:
            self._queue_local(run, request)
        elif request.held_ms is None or len(local_models) == len(request.models):
            shared.cancellations.append(self._limit_time(run, request, deadline_s))
            self._queue_local(run, request)
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
                if is_pending := run.pending is request:
                    shared.cancellations.append(cancel)
            if not is_pending:
                cancel()

    def _local_models(self, request: Run) -> list[str]:
        return [model for model in request.models if self._queues[model].runner is None]

    def _limit_time(self, run: RequestRun, request: Run, deadline_s: float) -> Callable[[], None]:
        """Set the timer that ends a request at its deadline; return the function that cancels it."""
        return self._timers.call_at(deadline_s - ANSWER_TIME_S, partial(self._end_at_deadline, run, request)).cancel

    def _queue_local(self, run: RequestRun, request: Run) -> None:
        with self._lock:
            if run.pending is request:  # no result came before
                self._waiting.enqueue(run, self._local_models(request))

    def _queue_held(self, run: RequestRun, request: Run) -> None:
        """Queue a request's models on this device, which were held back, because remote results are late or failed."""
        shared, deadline_s = run.shared, run.request.deadline_s
        assert shared is not None
        assert deadline_s is not None
        with self._lock:
            if run.pending is not request or not shared.is_held:
                return
            shared.is_held = False
            shared.cancellations.append(self._limit_time(run, request, deadline_s))
            self._waiting.enqueue(run, self._local_models(request))
        self._timers.wake()

    def _take_remote_result(
        self,
        run: RequestRun,
        request: Run,
        model: str,
        submitted_s: float,
        result: Prediction | JetselError,
        sent_bytes: int | None,
        received_bytes: int | None,
    ) -> None:
        """Deliver a runner's result to its run, in the runner's thread, and count the time of the remote run."""
        took_ms = (self._now() - submitted_s) * 1e3
        ran = None
        if isinstance(result, Prediction):
            ran = Ran(model, request.because, result.confidence, took_ms, 1, None, sent_bytes, received_bytes)
        try:
            is_resumed = self.deliver(run, model, result, ran)
        except Exception as error:  # a defect ends the run, not the runner's thread
            run.outcome, is_resumed = error, True
        if run.request.is_counted and ran is not None:
            self._queues[model].times.add_batch(
                took_ms, 1, self._now(), escalations=int(is_resumed and run.outcome is None)
            )
        if is_resumed:
            self.resumed.append(run)
            self._timers.wake()
        elif ran is None and run.shared is not None and run.shared.is_held:
            self._queue_held(run, request)

    def _end_at_deadline(self, run: RequestRun, request: Run) -> None:
        """Resume a policy at its deadline with the results so far, or with OutOfTime if there are none."""
        with self._lock:
            if run.pending is not request:  # the policy went on before
                return
            results = self._stop_waiting(run, request)
        try:
            self._resume(run, results, OutOfTime("no answer came before the deadline"))
        except Exception as error:  # a defect ends the run, not the timers' thread
            run.outcome = error
        self.resumed.append(run)
        self._timers.wake()

    def deliver(self, run: RequestRun, model: str, result: Prediction | JetselError, ran: Ran | None = None) -> bool:
        """Give a model's result to a run, and resume its policy unless it needs further results.

        Returns whether it was resumed; not if results are missing, or if the policy went on without this one. ran: the
        model's entry in the answer's list of runs; None if the result is an error.
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

    def _resume(self, run: RequestRun, results: list[Prediction | JetselError], error: Exception | None) -> None:
        """Send the predictions among the results to the policy; if there are none, throw the error into it."""
        assert run.steps is not None
        if predictions := tuple(result for result in results if isinstance(result, Prediction)):
            advance(self._queues, self._now, run, run.steps.send, predictions)
        else:
            advance(self._queues, self._now, run, run.steps.throw, error)

    def _stop_waiting(self, run: RequestRun, request: Run) -> list[Prediction | JetselError]:
        """Cancel what a run still waits for; return its results in the request's order. The caller holds the lock."""
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
