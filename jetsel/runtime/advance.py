"""One step of a policy: until it requests models that can run within the time that is left, or ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from jetsel.base.errors import DeadlineError, JetselError, ModelUnavailableError
from jetsel.policies.policy import Decision, OutOfTime, Run
from jetsel.runtime.model_queue import ModelQueue
from jetsel.runtime.request_run import RequestRun, SharedState


def advance(
    queues: Mapping[str, ModelQueue], now: Callable[[], float], run: RequestRun, resume: Callable[..., Run], *sent: Any
) -> None:
    """Resume a run's policy until it ends, or requests models that can run; otherwise throw the error into it.

    resume: the generator's method to call: __next__, send or throw. sent: its arguments, the predictions or the error.
    """
    assert run.steps is not None
    while True:
        began_s = now()
        try:
            request = resume(*sent)
        except StopIteration as stop:
            run.outcome = stop.value
        except OutOfTime as signal:
            signal.with_traceback(None)  # breaks a reference cycle: the frames name the run and the signal
            _cut_short(run)
        except JetselError as error:
            run.outcome = error.with_traceback(None)  # breaks a reference cycle, as above
        now_s = now()
        run.stages.choice += (now_s - began_s) * 1e3
        if run.outcome is not None:
            return
        runnable = _runnable(queues, run, request, now_s)
        if isinstance(runnable, Run):
            if run.shared is None and (len(runnable.models) > 1 or queues[runnable.models[0]].runner is not None):
                run.shared = SharedState()  # several models or a remote one: several threads will bring results
            run.pending, run.requested_s = runnable, now()
            return
        resume, sent = run.steps.throw, (runnable,)


def _cut_short(run: RequestRun) -> None:
    """End a run that lacks time by its last prediction; by DeadlineError if none came or an error rate is promised."""
    if run.best is None or run.request.has_promise:
        run.outcome = DeadlineError("too little time was left: allow more in deadline_ms")
        return
    run.outcome = Decision(run.best, f"time ran out; {run.best.model} is the best that ran", cut_short=True)


def _runnable(queues: Mapping[str, ModelQueue], run: RequestRun, request: Run, now_s: float) -> Run | Exception:
    """Return the request without its unavailable models, or the error to throw into the policy.

    The error is a model's, if the policy waits for all of them or none is available, or OutOfTime if the expected time
    (95th percentile) exceeds the deadline. Unloaded models begin to load, for this run or for the next one.
    """
    refusals: dict[str, JetselError] = {}
    for model in request.models:
        queue = queues.get(model)
        if queue is None:
            refusals[model] = ModelUnavailableError(f"{model} is unavailable: it is not loaded")
            continue
        queue.request_load()
        if queue.reason is not None:
            refusals[model] = queue.refusal()
    if refusals:
        available = tuple(model for model in request.models if model not in refusals)
        if request.until == "all" or not available:
            return next(iter(refusals.values()))
        request = structs.replace(request, models=available)
    deadline_s = run.request.deadline_s
    if deadline_s is not None:
        requested = [queues[model] for model in request.models]
        times_ms = [(queue.expected_ms(0.95, now_s) or 0.0) + queue.load_due_ms for queue in requested]
        needed_ms = max(times_ms) if request.until == "all" else min(times_ms)
        if now_s + needed_ms / 1e3 > deadline_s:
            return OutOfTime(f"{request.models} need {needed_ms:.1f} ms")
    return request
