"""The driver runs every policy: only it knows engines, time and failures, and only it batches.

This file runs one model at a time, on this device; all other runs go through `shared_runs`. The thread that has a run
carries it to its end: it resumes the policy, runs the model that the policy requests, and so on. If an engine has as
many callers as it serves, the run waits in the model's queue; the thread that leaves the engine takes the waiting runs
as one batch, as long as no deadline is missed by that. No thread waits here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from jetsel.base.errors import EngineDiedError, JetselError, ModelUnavailableError
from jetsel.base.events import event, run_about
from jetsel.policies.policy import Policy, Prediction
from jetsel.runtime.advance import advance
from jetsel.runtime.model_queue import Batch, ModelQueue, WaitingRuns, infer
from jetsel.runtime.request_run import RequestRun
from jetsel.runtime.shared_runs import SharedRuns, Timers
from jetsel.wire import Ran

log = logging.getLogger("jetsel.models")


class Driver:
    """Runs policies over a family's models. Every method may be called from any thread."""

    def __init__(
        self,
        queues: Mapping[str, ModelQueue],
        max_batch: int = 8,
        now: Callable[[], float] = time.monotonic,
        timers: Timers | None = None,
    ) -> None:
        """timers: the timers, shared by all drivers; their clock is time.monotonic()."""
        self.queues = dict(queues)
        self.waiting = WaitingRuns(self.queues, max_batch, now)
        self._now = now
        self.shared = SharedRuns(self.queues, self.waiting, timers or Timers(), now)

    def floor_ms(self, *policies: Policy) -> tuple[float, float]:
        """Return the least times in ms that any first model of these policies needs to run, and to load before that.

        They are the median of recent runs and the last load; 0 if nothing was measured. The load begins now, because
        requests that cannot wait for it would be refused forever.
        """
        now_s = self._now()
        first = dict.fromkeys(model for policy in policies for model in policy.first_models)
        able = [queue for model in first if (queue := self.queues[model]).reason is None]
        times_ms = [(queue.expected_ms(0.5, now_s) or 0.0, queue.load_due_ms, queue) for queue in able]
        usable = [times for times in times_ms if times[0] or times[1]]
        if not usable:
            return 0.0, 0.0
        run_ms, load_ms, queue = min(usable, key=lambda times: times[0] + times[1])
        queue.request_load()
        return run_ms, load_ms

    @property
    def has_work(self) -> bool:
        """Whether `carry` has something to do without a new run."""
        return bool(self.waiting or self.shared.returned)

    def start(self, run: RequestRun) -> None:
        """Start the policy of a run. Afterwards the run waits for its first models, or has ended; see `carry`."""
        run.steps = run.policy(run)
        advance(self.queues, self._now, run, run.steps.__next__)

    def carry(self, *runs: RequestRun) -> list[RequestRun]:
        """Continue these runs, and waiting runs whose engines are free, until each has ended or must wait.

        Returns the runs that have ended. The others wait for busy engines: the threads that use these continue them.
        """
        ended: list[RequestRun] = []
        going: Sequence[RequestRun] = runs
        while True:
            if self.shared.returned:
                going = [*going, *self.shared.take_returned()]
            batch = None
            asking: list[RequestRun] = []
            for run in going:
                (asking if run.outcome is None else ended).append(run)
            if len(asking) == 1 and asking[0].shared is None:
                batch = self.waiting.claim_engine(asking[0])
            if batch is None:
                for run in asking:
                    if run.shared is not None:
                        self.shared.send_out(run)
                    else:
                        assert run.pending is not None
                        self.waiting.put(run, run.pending.models)
                batch = self.waiting.take()
            if batch is None:
                return ended
            try:
                going = self.execute(batch)
            except Exception as error:  # a defect ends each run of the batch, not the thread
                for run in batch.runs:
                    run.outcome = error
                going = batch.runs

    # Runs of batches.

    def execute(self, batch: Batch) -> list[RequestRun]:
        """Run the batch; return the runs that have ended or request other models."""
        queue, runs = batch.queue, batch.runs
        try:
            results = run_about(batch.ids, infer, queue, runs, self._now)
        except EngineDiedError as error:
            runs = self._run_again(queue, runs)
            return self._fail(queue, runs, EngineDiedError(f"{queue.model} failed: {error}"))
        except JetselError as error:
            fields = event("model-failed", model=queue.model, code=error.code)
            log.error("%s failed: %s", queue.model, error, extra=fields)
            return self._fail(queue, runs, ModelUnavailableError(f"{queue.model} failed: {error}"))
        finally:
            if batch.place is not None:
                batch.place.leave()
        going, counted, escalations = [], 0, 0
        for run, (prediction, ran) in zip(runs, results, strict=True):
            goes_on = self._take_result(run, queue.model, prediction, ran)
            if run.request.is_counted:
                counted += 1
                escalations += goes_on and run.outcome is None
            if goes_on:
                going.append(run)
        if counted:
            took_ms = results[0][1].latency_ms
            queue.times.ran(took_ms, len(runs), self._now(), counted=counted, escalations=escalations)
        return going

    def _run_again(self, queue: ModelQueue, runs: list[RequestRun]) -> list[RequestRun]:
        """Put runs whose engine died back in front, each once and if there is time; return the others."""
        now_s = self._now()
        again = [run for run in runs if queue.model not in run.ran_again and queue.may_wait(run, now_s)]
        for run in again:
            run.ran_again += (queue.model,)
        self.waiting.put_back(queue, again)
        return [run for run in runs if run not in again]

    def _fail(self, queue: ModelQueue, runs: list[RequestRun], error: JetselError) -> list[RequestRun]:
        return [run for run in runs if self._take_result(run, queue.model, error)]

    # Results for policies.

    def _take_result(
        self, run: RequestRun, model: str, result: Prediction | JetselError, ran: Ran | None = None
    ) -> bool:
        """Give a run one result, and resume its policy if all results are there; return whether it was resumed.

        A run of one model is always resumed. ran: None if the result is an error.
        """
        assert run.steps is not None
        if run.shared is not None:
            return self.shared.take_result(run, model, result, ran)
        run.pending = None
        if isinstance(result, Prediction):
            assert ran is not None
            run.ran.append(ran)
            run.best = result
            advance(self.queues, self._now, run, run.steps.send, (result,))
        else:
            advance(self.queues, self._now, run, run.steps.throw, result)
        return True
