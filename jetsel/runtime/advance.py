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
    queues: Mapping[str, ModelQueue], now: Callable[[], float], run: RequestRun, move: Callable[..., Run], *given: Any
) -> None:
    """Resume the run's policy with `send` or `throw`, and again while the models that it requests cannot run.

    Afterwards the run has an outcome, or waits for models.
    """
    assert run.steps is not None
    while True:
        began_s = now()
        try:
            request = move(*given)
        except StopIteration as stop:
            run.outcome = stop.value
        except OutOfTime as signal:
            signal.with_traceback(None)  # breaks a reference cycle: the frames name the run and the signal
            _cut_short(run)
        except JetselError as error:
            run.outcome = error.with_traceback(None)  # as above
        now_s = now()
        run.stages.choice += (now_s - began_s) * 1e3
        if run.outcome is not None:
            return
        granted = _grant(queues, run, request, now_s)
        if isinstance(granted, Run):
            if run.shared is None and (len(granted.models) > 1 or queues[granted.models[0]].runner is not None):
                run.shared = SharedState()
            run.pending, run.requested_s = granted, now()
            return
        move, given = run.steps.throw, (granted,)


def _cut_short(run: RequestRun) -> None:
    """End a run without time with the last result; with DeadlineError if there is none or a promise was made."""
    if run.best is None or run.request.has_promise:
        run.outcome = DeadlineError("too little time was left: allow more in deadline_ms")
        return
    run.outcome = Decision(run.best, f"time ran out; {run.best.model} is the best that ran", cut_short=True)


def _grant(queues: Mapping[str, ModelQueue], run: RequestRun, request: Run, now_s: float) -> Run | Exception:
    """Return the part of the request that can run, or the error if nothing can, or not all of what must run together.

    Unloaded models begin to load, for this run or, if it cannot wait, for the next.
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
        left = tuple(model for model in request.models if model not in refusals)
        if request.until == "all" or not left:
            return next(iter(refusals.values()))
        request = structs.replace(request, models=left)
    deadline_s = run.request.deadline_s
    if deadline_s is not None:
        each_ms = [
            (queue.expected_ms(0.95, now_s) or 0.0) + queue.load_due_ms
            for queue in (queues[model] for model in request.models)
        ]
        needed_ms = max(each_ms) if request.until == "all" else min(each_ms)
        if now_s + needed_ms / 1e3 > deadline_s:
            return OutOfTime(f"{request.models} need {needed_ms:.1f} ms")
    return request
