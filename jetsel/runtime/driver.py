"""The one driver of every policy: it alone knows engines, time and failure, and it alone batches.

A thread that has a request run carries it: it lets the policy go on, runs the model that it asks for, and so on to the
end. Where an engine has as many callers as it serves, the run waits in the model's queue, and the thread that leaves
the engine takes all that wait, as one batch, up to a limit and to no deadline's harm. No thread waits inside.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jetsel.engines import EngineFailedError
from jetsel.errors import DeadlineError, EngineDiedError, JetselError, ModelUnavailableError
from jetsel.events import event, run_about
from jetsel.policies.policy import Decision, OutOfTime, Policy, Prediction, Run
from jetsel.runtime.model_queue import ModelQueue
from jetsel.runtime.predict import predict
from jetsel.runtime.request_run import RequestRun
from jetsel.runtime.waiting import Batch, Waiting
from jetsel.wire import Ran

log = logging.getLogger("jetsel.models")


class Driver:
    """Runs policies over a family's models. Every method may be called from any thread."""

    def __init__(
        self, queues: Mapping[str, ModelQueue], max_batch: int = 8, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.queues = dict(queues)
        self.waiting = Waiting(self.queues, max_batch, now)
        self._now = now
        self._lock = threading.Lock()  # of runs that asked for several models

    def floor_ms(self, policy: Policy) -> float:
        """The least time that any path of the policy needs, by the median of recent runs; 0 where none was measured."""
        known = [self.queues[model].percentile_ms(0.5) for model in policy.first if self.queues[model].reason is None]
        return min((ms for ms in known if ms is not None), default=0.0)

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
            batch = None
            asking: list[RequestRun] = []
            for run in going:
                (asking if run.outcome is None else ended).append(run)
            if len(asking) == 1:
                batch = self.waiting.at_once(asking[0])
            else:
                for run in asking:
                    self.waiting.put(run)
            batch = batch or self.waiting.take()
            if batch is None:
                return ended
            try:
                going = self.execute(batch)
            except Exception as error:  # the net of the models' runs: a defect of ours ends each run of the batch
                for run in batch.runs:
                    run.outcome = error
                going = batch.runs

    # How they run.

    def execute(self, batch: Batch) -> list[RequestRun]:
        """Run the batch; return those of its runs that have ended, or ask for other models now."""
        queue, runs = batch.queue, batch.runs
        try:
            results = run_about(batch.ids, self._infer, queue, runs)
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
        for run, prediction in zip(runs, results, strict=True):
            goes_on = self._take_result(run, queue.model, prediction)
            if run.is_counted:
                took_ms = run.ran[-1].latency_ms / len(runs)
                queue.record.ran(took_ms, self._now(), escalated=goes_on and run.outcome is None)
            if goes_on:
                going.append(run)
        return going

    def _infer(self, queue: ModelQueue, runs: list[RequestRun]) -> list[Prediction]:
        assert queue.engine is not None
        begun_s = self._now()
        inputs = [run.model_input(queue.model) for run in runs]
        began = time.perf_counter()
        logits, embeddings, device_ms = queue.engine.infer(*inputs)
        took_ms = (time.perf_counter() - began) * 1e3
        if not math.isfinite(np.add.reduce(logits, axis=None)):  # one number that is not makes the sum so
            raise EngineFailedError("it answered numbers that are not finite")
        predictions = []
        for number, run in enumerate(runs):
            embedding = None if embeddings is None else embeddings[number]
            prediction = predict(queue.model, logits[number], queue.temperature, run.criterion, embedding)
            because = run.asked.because if run.asked else ""
            run.ran.append(Ran(queue.model, because, prediction.confidence, took_ms, len(runs), device_ms))
            run.waiting_ms += (begun_s - run.asked_s) * 1e3
            predictions.append(prediction)
        if runs[0].is_counted:  # the daemon's own request is seldom in a batch
            queue.times_ms.append(took_ms / len(runs))
        return predictions

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

    def _take_result(self, run: RequestRun, model: str, result: Prediction | JetselError) -> bool:
        """Give a run one result, and let its policy go on with all of them; return whether it does so now.

        It does not where others are waited for, or where the first of several has answered already.
        """
        asked = run.asked
        assert run.steps is not None
        if asked is not None and len(asked.models) == 1:
            run.asked = None
            if isinstance(result, Prediction):
                run.best = result
                self._advance(run, run.steps.send, (result,))
            else:
                self._advance(run, run.steps.throw, result)
            return True
        with self._lock:
            if (asked := run.asked) is None or model not in asked.models:
                return False
            run.results[model] = result
            if isinstance(result, Prediction):
                run.best = result
            is_enough = asked.until == "first" and isinstance(result, Prediction)
            if not is_enough and len(run.results) < len(asked.models):
                return False
            run.asked = None
            results = [run.results.pop(name) for name in asked.models if name in run.results]
        good = tuple(result for result in results if isinstance(result, Prediction))
        failed = next((result for result in results if not isinstance(result, Prediction)), None)
        if failed is None or (good and asked.until == "first"):
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
            refused = self._refuse(run, asked)
            if refused is None:
                run.asked, run.asked_s = asked, self._now()
                return
            move, given = run.steps.throw, (refused,)

    def _refuse(self, run: RequestRun, asked: Run) -> Exception | None:
        """Why this cannot be had: a model is unavailable, or the time left is too short for it."""
        for model in asked.models:
            queue = self.queues.get(model)
            if queue is None:
                return ModelUnavailableError(f"{model} is unavailable: it is not loaded")
            if queue.engine is None or queue.engine.unavailable is not None:
                return queue.refusal()
        if run.deadline_s is not None:
            needed_ms = max(self.queues[model].percentile_ms(0.95) or 0.0 for model in asked.models)
            if self._now() + needed_ms / 1e3 > run.deadline_s:
                return OutOfTime(f"{asked.models} need {needed_ms:.1f} ms")
        return None

    def _cut_short(self, run: RequestRun) -> None:
        if run.best is None:
            run.outcome = DeadlineError("too little time was left for any model: allow more in deadline_ms")
            return
        run.cut_short = True
        run.outcome = Decision(run.best, f"time ran out; {run.best.model} is the best that ran")
