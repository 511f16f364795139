"""What of that which a policy asks for can be had: models that are there, in the time that is left."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from jetsel.errors import JetselError, ModelUnavailableError
from jetsel.policies.policy import OutOfTime, Run
from jetsel.runtime.model_queue import ModelQueue
from jetsel.runtime.request_run import RequestRun


def grant(queues: Mapping[str, ModelQueue], run: RequestRun, asked: Run, now_s: float) -> Run | Exception:
    """Return what of this can be had; or why nothing can, or not all of what is all waited for.

    Models that are unloaded begin to load, for this run or, where it cannot wait, for the next.
    """
    for model in asked.models:
        if model in queues:
            queues[model].want()
    refusals = {model: refusal for model in asked.models if (refusal := _refusal(queues, model)) is not None}
    if refusals:
        left = tuple(model for model in asked.models if model not in refusals)
        if asked.until == "all" or not left:
            return next(iter(refusals.values()))
        asked = structs.replace(asked, models=left)
    if run.deadline_s is not None:
        each_ms = [
            (queue.expected_ms(0.95, now_s) or 0.0) + queue.load_due_ms
            for queue in (queues[model] for model in asked.models)
        ]
        needed_ms = max(each_ms) if asked.until == "all" else min(each_ms)
        if now_s + needed_ms / 1e3 > run.deadline_s:
            return OutOfTime(f"{asked.models} need {needed_ms:.1f} ms")
    return asked


def _refusal(queues: Mapping[str, ModelQueue], model: str) -> JetselError | None:
    """Why a model is not to be had now."""
    queue = queues.get(model)
    if queue is None:
        return ModelUnavailableError(f"{model} is unavailable: it is not loaded")
    return None if queue.reason is None else queue.refusal()
