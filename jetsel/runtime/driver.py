"""The driver runs every policy: only it knows engines, time and failures, and only it batches.

This file runs one model at a time, on this device; all other runs go through `shared_runs`. A thread continues a run
to its end: it resumes the policy, runs the model that the policy requests, and so on. If an engine has as many callers
as it serves, the run waits in the model's queue; the thread that leaves the engine takes the waiting runs as one batch,
if that makes no run miss its deadline. No thread waits here.
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
    """Runs the policies of requests to one family of models. Every method may be called from any thread."""

    def __init__(
        self,
        queues: Mapping[str, ModelQueue],
        max_batch: int = 8,
        now: Callable[[], float] = time.monotonic,
        timers: Timers | None = None,
    ) -> None:
        """timers: shared by all drivers of a daemon, None for its own; their clock is time.monotonic(). now: in s."""
        self.queues = dict(queues)
        self.waiting = WaitingRuns(self.queues, max_batch, now)
        self._now = now
        self.shared = SharedRuns(self.queues, self.waiting, timers or Timers(), now)

    def least_times_ms(self, *policies: Policy) -> tuple[float, float]:
        """Return, of the fastest model that these policies may run first, the times of its run and of a load before it.

        Both are in ms, and 0 if unknown; the run's time is the median of recent runs. A request with a shorter deadline
        will be refused, so the load begins now: otherwise such requests would be refused forever.
        """
        now_s = self._now()
        first_models = dict.fromkeys(model for policy in policies for model in policy.first_models)
        available = [queue for model in first_models if (queue := self.queues[model]).reason is None]
        times_ms = [(queue.expected_ms(0.5, now_s) or 0.0, queue.load_due_ms, queue) for queue in available]
        measured = [times for times in times_ms if times[0] or times[1]]
        if not measured:
            return 0.0, 0.0
        run_ms, load_ms, queue = min(measured, key=lambda times: times[0] + times[1])
        queue.request_load()
        return run_ms, load_ms

    @property
    def has_work(self) -> bool:
        """Whether a call of `continue_runs` without arguments would find runs to continue."""
        return bool(self.waiting or self.shared.resumed)

    def start(self, run: RequestRun) -> None:
        """Start a run's policy. Afterwards the run is pending for its first models, or has its outcome already."""
        run.steps = run.policy(run)
        advance(self.queues, self._now, run, run.steps.__next__)

    def continue_runs(self, *runs: RequestRun) -> list[RequestRun]:
        """Run models for these runs, and for waiting runs whose engines are free, until no run can go on.

        Returns the runs that have ended. The others wait for busy engines: the threads that use these continue them.
        """
        ended: list[RequestRun] = []
        resumed: Sequence[RequestRun] = runs  # their policies have just requested models, or ended
        while True:
            if self.shared.resumed:
                resumed = [*resumed, *self.shared.pop_resumed()]
            batch = None
            pending: list[RequestRun] = []
            for run in resumed:
                (pending if run.outcome is None else ended).append(run)
            if len(pending) == 1 and pending[0].shared is None:
                batch = self.waiting.claim_engine(pending[0])
            if batch is None:
                for run in pending:
                    if run.shared is not None:
                        self.shared.start_models(run)
                    else:
                        assert run.pending is not None
                        self.waiting.enqueue(run, run.pending.models)
                batch = self.waiting.next_batch()
            if batch is None:
                return ended
            try:
                resumed = self.execute(batch)
            except Exception as error:  # a defect ends each run of the batch, not the thread
                for run in batch.runs:
                    run.outcome = error
                resumed = batch.runs

    def execute(self, batch: Batch) -> list[RequestRun]:
        """Run the batch's model and resume the policies of its runs; return the runs that ended or request models."""
        queue, runs = batch.queue, batch.runs
        try:
            results = run_about(batch.ids, infer, queue, runs, self._now)
        except EngineDiedError as error:
            runs = self._requeue(queue, runs)
            return self._fail(queue, runs, EngineDiedError(f"{queue.model} failed: {error}"))
        except JetselError as error:
            fields = event("model-failed", model=queue.model, code=error.code)
            log.error("%s failed: %s", queue.model, error, extra=fields)
            return self._fail(queue, runs, ModelUnavailableError(f"{queue.model} failed: {error}"))
        finally:
            if batch.caller_limiter is not None:
                batch.caller_limiter.leave()
        resumed, counted, escalations = [], 0, 0
        for run, (prediction, ran) in zip(runs, results, strict=True):
            is_resumed = self._deliver(run, queue.model, prediction, ran)
            if run.request.is_counted:
                counted += 1
                escalations += is_resumed and run.outcome is None
            if is_resumed:
                resumed.append(run)
        if counted:
            took_ms = results[0][1].latency_ms
            queue.times.add_batch(took_ms, len(runs), self._now(), counted=counted, escalations=escalations)
        return resumed

    def _requeue(self, queue: ModelQueue, runs: list[RequestRun]) -> list[RequestRun]:
        """Put runs whose engine died back into its queue, once each and if time is left; return the others, to fail."""
        now_s = self._now()
        requeued = [run for run in runs if queue.model not in run.ran_again and queue.may_wait(run, now_s)]
        for run in requeued:
            run.ran_again += (queue.model,)
        self.waiting.requeue(queue, requeued)
        return [run for run in runs if run not in requeued]

    def _fail(self, queue: ModelQueue, runs: list[RequestRun], error: JetselError) -> list[RequestRun]:
        """Raise the error in the policies of these runs; return the runs that were resumed by it."""
        return [run for run in runs if self._deliver(run, queue.model, error)]

    def _deliver(self, run: RequestRun, model: str, result: Prediction | JetselError, ran: Ran | None = None) -> bool:
        """Give a model's result to a run, and resume its policy unless it needs further results.

        Returns whether the policy was resumed, which is always so if it waits for one model. ran: the model's entry in
        the answer's list of runs; None if the result is an error.
        """
        assert run.steps is not None
        if run.shared is not None:
            return self.shared.deliver(run, model, result, ran)
        run.pending = None
        if isinstance(result, Prediction):
            assert ran is not None
            run.ran.append(ran)
            run.best = result
            advance(self.queues, self._now, run, run.steps.send, (result,))
        else:
            advance(self.queues, self._now, run, run.steps.throw, result)
        return True
