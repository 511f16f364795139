"""One line for each request, where [log] requests asks for it, and the warnings that single requests give rise to."""

from __future__ import annotations

import logging

from jetsel.daemon.job import Job
from jetsel.errors import BusyError, JetselError, OverLimitError
from jetsel.events import event
from jetsel.wire import Answer, Failure

log = logging.getLogger("jetsel.daemon")


def log_reply(job: Job, reply: Answer | Failure) -> None:
    """Log the outcome of an admitted request, and the stages that it came through."""
    stages = reply.stages_ms if isinstance(reply, Answer) else None
    told = event(
        "request",
        request_id=job.request.id,
        outcome="ok" if isinstance(reply, Answer) else reply.code,
        client=job.load.client,
        family=job.family.name,
        policy=job.policy.name,
        model=[run.model for run in job.flight.ran] if job.flight is not None else None,
        queue_ms=job.queue_ms,
        decode_ms=job.decode_ms,
        features_ms=job.features_ms,
        choice_ms=stages and stages.choice,
        waiting_ms=stages and stages.waiting,
        inference_ms=stages and stages.inference,
        total_ms=stages and stages.total,
    )
    words = f"answered {reply.label} by {reply.model}" if isinstance(reply, Answer) else f"failed: {reply.message}"
    log.info("%s", words, extra=told)


def log_refusal(request_id: str | None, error: JetselError, client: str) -> None:
    """Log a message that was not admitted."""
    told = event("request", request_id=request_id, outcome=error.code, client=client)
    log.info("refused: %s", error, extra=told)


def warn_of_limit(error: JetselError, client: str) -> None:
    """Warn where the daemon's queue is full or a client is at its limit; who repeats it is left out of the log."""
    if isinstance(error, BusyError):
        log.warning("requests are refused: %s", error, extra=event("queue-full", code=error.code))
    elif isinstance(error, OverLimitError):
        log.warning("a client is at its limit: %s", error, extra=event("client-over-limit", client=client))
