"""Runs that several threads may bring results to: of several models at a time, by a deadline, or elsewhere.

A result comes from the thread that ran a model here, from a runner's thread, or it is the deadline's timer that fires.
The first that decides what the policy goes on with, under the lock, cancels the rest; the run is then carried on by
whichever thread takes it from `returned`, or by the one that has it already.

One heap of timers and one thread that sleeps until the earliest of them, for all drivers of a daemon. It begins with
the first timer: a daemon whose models all run here has neither.
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
from jetsel.runtime.model_queue import ModelQueue, Traffic, Waiting
from jetsel.runtime.request_run import Handle, RequestRun
from jetsel.wire import Ran

log = logging.getLogger("jetsel.daemon")


class Timer:
    """A time at which something is called, unless it is cancelled before."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Call nothing, and hold nothing any more."""
        self.call = None


class Events:
    """Any thread may call. wake: rouses a thread that lets drivers carry on."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()  # of timers with the same time the first set is the first called
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def at(self, time_s: float, call: Callable[[], None]) -> Timer:
        """Have this called at a time of time.monotonic(), by the timers' thread."""
        timer = Timer(call)
        with self._changed:
            heapq.heappush(self._timers, (time_s, next(self._numbers), timer))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
                self._thread.start()
            elif self._timers[0][2] is timer:
                self._changed.notify()
        return timer

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._timers or (left_s := self._timers[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left_s if self._timers else None)
                timer = heapq.heappop(self._timers)[2]
            call = timer.call
            if call is not None:
                try:
                    call()
                except Exception:  # the thread must live to call the next
                    log.exception("a timer failed because of a defect; later timers run", extra=event("timer-failed"))


SETTLED_S = 0.002  # before a deadline, what has come is taken: the answer is put into words and sent in that time


class SharedRuns:
    """The shared runs of one driver. Any thread may call.

    returned: runs that went on outside `Driver.carry`, for a thread to carry on; read without the lock.
    unused: receives a model that ran although the policy had gone on.
    """

    def __init__(
        self, queues: Mapping[str, ModelQueue], waiting: Waiting, events: Events, now: Callable[[], float]
    ) -> None:
        """events: whose clock is `now`; its `wake` is called when a thread is needed."""
        self._queues = queues
        self._waiting = waiting
        self._events = events
        self._now = now
        self._lock = threading.Lock()
        self.returned: deque[RequestRun] = deque()
        self.unused: Callable[[str], None] = lambda _: None

    def take_returned(self) -> list[RequestRun]:
        """Return the runs that went on outside `Driver.carry`: they have ended, or ask for other models."""
        returned: list[RequestRun] = []
        while self.returned:
            with contextlib.suppress(IndexError):  # another thread was faster
                returned.append(self.returned.popleft())
        return returned

    def send_out(self, run: RequestRun) -> None:
        """Have every model that was asked for look at the photograph: here when its engine is free, elsewhere now."""
        request, shared, deadline_s = run.pending, run.shared, run.request.deadline_s
        assert request is not None
        assert shared is not None
        here = [model for model in request.models if self._queues[model].runner is None]
        if request.until != "deadline" or deadline_s is None:
            self._begin(run, request, here)
        elif request.held_ms is None or len(here) == len(request.models):
            shared.pending.append(self._time_limit(run, request, deadline_s))
            self._begin(run, request, here)
        else:
            shared.is_held = True
            held_s = deadline_s - SETTLED_S - request.held_ms / 1e3
            shared.pending.append(self._events.at(held_s, partial(self._hold_no_longer, run, request)))
        for model in request.models:
            runner = self._queues[model].runner
            if runner is None or run.pending is not request:
                continue
            handle = runner.submit(model, run, partial(self._arrived, run, request, model, self._now()))
            with self._lock:
                if is_wanted := run.pending is request:
                    shared.pending.append(handle)
            if not is_wanted:
                handle.cancel()

    def _time_limit(self, run: RequestRun, request: Run, deadline_s: float) -> Handle:
        return self._events.at(deadline_s - SETTLED_S, partial(self._time_is_up, run, request))

    def _begin(self, run: RequestRun, request: Run, here: list[str]) -> None:
        with self._lock:
            if run.pending is request:  # nothing was faster
                self._waiting.put(run, here)

    def _hold_no_longer(self, run: RequestRun, request: Run) -> None:
        """Begin what was held back here: nothing came from elsewhere, and this is the last moment, or nothing will."""
        shared, deadline_s = run.shared, run.request.deadline_s
        assert shared is not None
        assert deadline_s is not None
        with self._lock:
            if run.pending is not request or not shared.is_held:
                return
            shared.is_held = False
            shared.pending.append(self._time_limit(run, request, deadline_s))
            self._waiting.put(run, [model for model in request.models if self._queues[model].runner is None])
        self._events.wake()

    def _arrived(
        self,
        run: RequestRun,
        request: Run,
        model: str,
        begun_s: float,
        result: Prediction | JetselError,
        traffic: Traffic | None,
    ) -> None:
        """Take what a runner's thread brings."""
        took_ms = (self._now() - begun_s) * 1e3
        ran = None
        if isinstance(result, Prediction):
            ran = Ran(model, request.because, result.confidence, took_ms, 1, None, *(traffic or ()))
        try:
            goes_on = self.take_result(run, model, result, ran)
        except Exception as error:  # the same net: a defect ends the run, and not the runner's thread
            run.outcome, goes_on = error, True
        if run.request.is_counted and ran is not None:
            self._queues[model].times.ran(took_ms, 1, self._now(), escalations=int(goes_on and run.outcome is None))
        if goes_on:
            self.returned.append(run)
            self._events.wake()
        elif ran is None and run.shared is not None and run.shared.is_held:
            self._hold_no_longer(run, request)

    def _time_is_up(self, run: RequestRun, request: Run) -> None:
        """Let a policy go on with what has come by its deadline, or hear that it is out of time."""
        assert run.steps is not None
        with self._lock:
            if run.pending is not request:
                return
            results = self._settle(run, request)
        try:
            if good := tuple(result for result in results if isinstance(result, Prediction)):
                advance(self._queues, self._now, run, run.steps.send, good)
            else:
                advance(self._queues, self._now, run, run.steps.throw, OutOfTime("no answer came before the deadline"))
        except Exception as error:  # as above
            run.outcome = error
        self.returned.append(run)
        self._events.wake()

    def take_result(
        self, run: RequestRun, model: str, result: Prediction | JetselError, ran: Ran | None = None
    ) -> bool:
        """Give a run one result, and let its policy go on with all of them; return whether it does so now.

        It does not if others are waited for, or if what has come before was enough. ran: of a prediction.
        """
        shared = run.shared
        assert run.steps is not None
        assert shared is not None
        with self._lock:
            if (request := run.pending) is None or model not in request.models or model in shared.results:
                if isinstance(result, Prediction):
                    self.unused(model)
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
            results = self._settle(run, request)
        good = tuple(result for result in results if isinstance(result, Prediction))
        failed = next((result for result in results if not isinstance(result, Prediction)), None)
        if failed is None or (good and request.until != "all"):
            advance(self._queues, self._now, run, run.steps.send, good)
        else:
            advance(self._queues, self._now, run, run.steps.throw, failed)
        return True

    def _settle(self, run: RequestRun, request: Run) -> list[Prediction | JetselError]:
        """End what a run waits for, which the caller's lock guards; return what has come, in the order asked."""
        shared = run.shared
        assert shared is not None
        run.pending, shared.is_held = None, False
        results = [shared.results.pop(name) for name in request.models if name in shared.results]
        if len(results) < len(request.models):
            self._waiting.remove(run, request.models)
        for handle in shared.pending:
            handle.cancel()
        shared.pending.clear()
        return results
