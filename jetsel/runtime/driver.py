"""The one driver of every policy: it alone knows engines, time and failure, and it alone batches.

A thread that has a request run carries it: it lets the policy go on, runs the model that it asks for, and so on to the
end. Where an engine has as many callers as it serves, the run waits in the model's queue, and the thread that leaves
the engine takes all that wait, as one batch, up to a limit and to no deadline's harm. No thread waits inside.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jetsel.errors import DeadlineError, EngineDiedError, JetselError, ModelUnavailableError
from jetsel.events import event, run_about
from jetsel.policies.policy import Decision, OutOfTime, Policy, Prediction, Run
from jetsel.runtime.advance import grant
from jetsel.runtime.events import Events
from jetsel.runtime.infer import infer
from jetsel.runtime.model_queue import ModelQueue
from jetsel.runtime.request_run import RequestRun
from jetsel.runtime.runner import Traffic
from jetsel.runtime.waiting import Batch, Waiting
from jetsel.wire import Ran

log = logging.getLogger("jetsel.models")

SETTLED_S = 0.002  # before a deadline, what has come is taken: the answer is put into words and sent in that time


class Driver:
    """Runs policies over a family's models. Every method may be called from any thread."""

    def __init__(
        self,
        queues: Mapping[str, ModelQueue],
        max_batch: int = 8,
        now: Callable[[], float] = time.monotonic,
        events: Events | None = None,
    ) -> None:
        """events: of all drivers together; its clock is time.monotonic()."""
        self.queues = dict(queues)
        self.waiting = Waiting(self.queues, max_batch, now)
        self._now = now
        self._events = events or Events()
        self._lock = threading.Lock()  # of the runs that are shared
        self._returned: deque[RequestRun] = deque()  # runs that went on outside `carry`

    def floor_ms(self, policy: Policy) -> tuple[float, float]:
        """The least time that any path of the policy needs: to run, and before that to load what is unloaded.

        By the median of recent runs and the last load; 0 where none was measured. The load begins now, so that requests
        that cannot wait for it are not refused for ever.
        """
        now_s = self._now()
        able = [queue for model in policy.first if (queue := self.queues[model]).reason is None]
        times_ms = [(queue.expected_ms(0.5, now_s) or 0.0, queue.load_due_ms, queue) for queue in able]
        known = [times for times in times_ms if times[0] or times[1]]
        if not known:
            return 0.0, 0.0
        run_ms, load_ms, queue = min(known, key=lambda times: times[0] + times[1])
        queue.want()
        return run_ms, load_ms

    @property
    def has_work(self) -> bool:
        """Whether `carry` has something to do although no run is given to it."""
        return bool(self.waiting or self._returned)

    def start(self, run: RequestRun) -> None:
        """Let the policy begin: it asks for its first models, or has ended with that. `carry` goes on with it."""
        run.steps = run.policy(run.photo)
        self._advance(run, run.steps.__next__)

    def carry(self, *runs: RequestRun) -> list[RequestRun]:
        """Carry these runs on, and all that wait for engines which are free, as far as this thread can.

        Returns those that have ended; the others wait for engines whose callers take them along.
        """
        ended: list[RequestRun] = []
        going: Sequence[RequestRun] = runs
        while True:
            if self._returned:
                going = [*going, *self._take_returned()]
            batch = None
            asking: list[RequestRun] = []
            for run in going:
                (asking if run.outcome is None else ended).append(run)
            if len(asking) == 1 and not asking[0].is_shared:
                batch = self.waiting.at_once(asking[0])
            if batch is None:
                for run in asking:
                    self._send_out(run)
                batch = self.waiting.take()
            if batch is None:
                return ended
            try:
                going = self.execute(batch)
            except Exception as error:  # the net of the models' runs: a defect of ours ends each run of the batch
                for run in batch.runs:
                    run.outcome = error
                going = batch.runs

    def _take_returned(self) -> list[RequestRun]:
        found: list[RequestRun] = []
        while self._returned:
            with contextlib.suppress(IndexError):  # another thread was faster
                found.append(self._returned.popleft())
        return found

    # Runs elsewhere, and several at a time.

    def _send_out(self, run: RequestRun) -> None:
        """Have every model that was asked for look at the photograph: here when its engine is free, elsewhere now."""
        asked = run.asked
        assert asked is not None
        if not run.is_shared:
            self.waiting.put(run, asked.models)
            return
        here = [model for model in asked.models if self.queues[model].runner is None]
        if asked.until != "deadline" or run.deadline_s is None:
            self._begin(run, asked, here)
        elif asked.held_ms is None or len(here) == len(asked.models):
            run.timer = self._events.at(run.deadline_s - SETTLED_S, partial(self._time_is_up, run, asked))
            self._begin(run, asked, here)
        else:
            run.is_held = True
            held_s = run.deadline_s - SETTLED_S - asked.held_ms / 1e3
            run.timer = self._events.at(held_s, partial(self._hold_no_longer, run, asked))
        for model in asked.models:
            runner = self.queues[model].runner
            if runner is None or run.asked is not asked:
                continue
            handle = runner.submit(model, run, partial(self._arrived, run, asked, model, self._now()))
            with self._lock:
                if is_wanted := run.asked is asked:
                    run.handles[model] = handle
            if not is_wanted:
                handle.cancel()

    def _begin(self, run: RequestRun, asked: Run, here: list[str]) -> None:
        with self._lock:
            if run.asked is asked:  # nothing was faster
                self.waiting.put(run, here)

    def _hold_no_longer(self, run: RequestRun, asked: Run) -> None:
        """Begin what was held back here: nothing came from elsewhere, and this is the last moment, or nothing will."""
        assert run.deadline_s is not None
        with self._lock:
            if run.asked is not asked or not run.is_held:
                return
            run.is_held = False
            if run.timer is not None:
                run.timer.cancel()
            run.timer = self._events.at(run.deadline_s - SETTLED_S, partial(self._time_is_up, run, asked))
            self.waiting.put(run, [model for model in asked.models if self.queues[model].runner is None])
        self._events.wake()

    def _arrived(
        self,
        run: RequestRun,
        asked: Run,
        model: str,
        begun_s: float,
        result: Prediction | JetselError,
        traffic: Traffic | None,
    ) -> None:
        """Take what a runner's thread brings."""
        took_ms = (self._now() - begun_s) * 1e3
        ran = None
        if isinstance(result, Prediction):
            ran = Ran(model, asked.because, result.confidence, took_ms, 1, None, *(traffic or ()))
            self.queues[model].times_ms.append(took_ms)
        try:
            goes_on = self._take_result(run, model, result, ran)
        except Exception as error:  # the same net: a defect ends the run, and not the runner's thread
            run.outcome, goes_on = error, True
        if run.is_counted and ran is not None:
            self.queues[model].record.ran(took_ms, self._now(), escalated=goes_on and run.outcome is None)
        if goes_on:
            self._returned.append(run)
            self._events.wake()
        elif ran is None and run.is_held:
            self._hold_no_longer(run, asked)

    def _time_is_up(self, run: RequestRun, asked: Run) -> None:
        """Let a policy go on with what has come by its deadline, or hear that it is out of time."""
        assert run.steps is not None
        with self._lock:
            if run.asked is not asked:
                return
            results = self._settle(run, asked)
        try:
            if good := tuple(result for result in results if isinstance(result, Prediction)):
                self._advance(run, run.steps.send, good)
            else:
                self._advance(run, run.steps.throw, OutOfTime("nothing has come by the deadline"))
        except Exception as error:  # as above
            run.outcome = error
        self._returned.append(run)
        self._events.wake()

    def _settle(self, run: RequestRun, asked: Run) -> list[Prediction | JetselError]:
        """End what a run waits for, which the caller's lock guards; return what has come, in the order asked."""
        run.asked, run.is_held = None, False
        results = [run.results.pop(name) for name in asked.models if name in run.results]
        if run.timer is not None:
            run.timer.cancel()
            run.timer = None
        if len(results) < len(asked.models):
            self.waiting.remove(run, asked.models)
        for handle in run.handles.values():
            handle.cancel()
        run.handles.clear()
        return results

    # How they run.

    def execute(self, batch: Batch) -> list[RequestRun]:
        """Run the batch; return those of its runs that have ended, or ask for other models now."""
        queue, runs = batch.queue, batch.runs
        try:
            results = run_about(batch.ids, infer, queue, runs, self._now)
        except EngineDiedError as error:
            runs = self._run_again(queue, runs)
            return self._fail(queue, runs, EngineDiedError(f"{queue.model} failed: {error}"))
        except JetselError as error:
            told = event("model-failed", model=queue.model, code=error.code)
            log.error("%s failed: %s", queue.model, error, extra=told)
            return self._fail(queue, runs, ModelUnavailableError(f"{queue.model} failed: {error}"))
        finally:
            if batch.place is not None:
                batch.place.leave()
        going = []
        for run, (prediction, ran) in zip(runs, results, strict=True):
            goes_on = self._take_result(run, queue.model, prediction, ran)
            if run.is_counted:
                escalated = goes_on and run.outcome is None
                queue.record.ran(ran.latency_ms / len(runs), self._now(), escalated=escalated)
            if goes_on:
                going.append(run)
        return going

    def _run_again(self, queue: ModelQueue, runs: list[RequestRun]) -> list[RequestRun]:
        """Put runs that died with their engine back in front, each once and if there is time; return the others."""
        now_s = self._now()
        again = [run for run in runs if queue.model not in run.ran_again and queue.may_wait(run, now_s)]
        for run in again:
            run.ran_again.add(queue.model)
        self.waiting.put_back(queue, again)
        return [run for run in runs if run not in again]

    def _fail(self, queue: ModelQueue, runs: list[RequestRun], error: JetselError) -> list[RequestRun]:
        return [run for run in runs if self._take_result(run, queue.model, error)]

    # How a policy goes on.

    def _take_result(
        self, run: RequestRun, model: str, result: Prediction | JetselError, ran: Ran | None = None
    ) -> bool:
        """Give a run one result, and let its policy go on with all of them; return whether it does so now.

        It does not where others are waited for, or where what has come before was enough. ran: of a prediction.
        """
        assert run.steps is not None
        if not run.is_shared:
            run.asked = None
            if isinstance(result, Prediction):
                assert ran is not None
                _note(run, result, ran)
                self._advance(run, run.steps.send, (result,))
            else:
                self._advance(run, run.steps.throw, result)
            return True
        with self._lock:
            if (asked := run.asked) is None or model not in asked.models or model in run.results:
                if isinstance(result, Prediction):
                    run.unused(model)
                return False
            run.results[model] = result
            is_enough = False
            if isinstance(result, Prediction):
                assert ran is not None
                _note(run, result, ran)
                is_enough = asked.until == "first" or (asked.until == "deadline" and model == asked.models[-1])
            if not is_enough and len(run.results) < len(asked.models):
                return False
            results = self._settle(run, asked)
        good = tuple(result for result in results if isinstance(result, Prediction))
        failed = next((result for result in results if not isinstance(result, Prediction)), None)
        if failed is None or (good and asked.until != "all"):
            self._advance(run, run.steps.send, good)
        else:
            self._advance(run, run.steps.throw, failed)
        return True

    def _advance(self, run: RequestRun, move: Callable[..., Run], *given: Any) -> None:
        """Let the policy go on until it asks for models that can be had, or ends."""
        assert run.steps is not None
        while True:
            began = time.perf_counter()
            try:
                asked = move(*given)
            except StopIteration as stop:
                run.outcome = stop.value
            except OutOfTime as signal:
                signal.with_traceback(None)  # its frames name the run and the signal: a circle would keep both
                self._cut_short(run)
            except JetselError as error:
                run.outcome = error.with_traceback(None)  # likewise
            run.choice_ms += (time.perf_counter() - began) * 1e3
            if run.outcome is not None:
                return
            granted = grant(self.queues, run, asked, self._now())
            if isinstance(granted, Run):
                if len(granted.models) > 1 or self.queues[granted.models[0]].runner is not None:
                    run.is_shared = True
                run.asked, run.asked_s = granted, self._now()
                return
            move, given = run.steps.throw, (granted,)

    def _cut_short(self, run: RequestRun) -> None:
        if run.best is None:
            run.outcome = DeadlineError("too little time was left for any model: allow more in deadline_ms")
            return
        run.cut_short = True
        run.outcome = Decision(run.best, f"time ran out; {run.best.model} is the best that ran")


def _note(run: RequestRun, prediction: Prediction, ran: Ran) -> None:
    """Note what ran for a request."""
    run.ran.append(ran)
    run.best = prediction
