"""One line for each request, where [log] requests asks for it."""

from __future__ import annotations

import logging

from jetsel.daemon.job import Job
from jetsel.errors import JetselError
from jetsel.events import event
from jetsel.wire import Answer, Failure

log = logging.getLogger("jetsel.daemon")


def finished(job: Job, reply: Answer | Failure) -> None:
    """Tell of a request that was let in: its outcome, and what it took as far as it came."""
    if isinstance(reply, Answer):
        ran, stages = reply.ran, reply.stages_ms
        told = event(
            "request",
            request_id=job.request.id,
            outcome="ok",
            client=job.load.client,
            family=reply.family,
            policy=reply.policy,
            model=[run.model for run in ran],
            queue_ms=stages.queue,
            decode_ms=stages.decode,
            features_ms=stages.features,
            choice_ms=stages.choice,
            waiting_ms=stages.waiting,
            inference_ms=stages.inference,
            total_ms=stages.total,
        )
        log.info("answered %s by %s", reply.label, reply.model, extra=told)
    else:
        told = event(
            "request",
            request_id=job.request.id,
            outcome=reply.code,
            client=job.load.client,
            family=job.family.name,
            policy=job.policy.name,
            model=[run.model for run in job.flight.ran] if job.flight is not None else None,
            queue_ms=job.queue_ms,
            decode_ms=job.decode_ms,
            features_ms=job.features_ms,
            waiting_ms=job.flight.waiting_ms if job.flight is not None and job.flight.ran else None,
        )
        log.info("failed: %s", reply.message, extra=told)


def refused(request_id: str | None, error: JetselError, client: str) -> None:
    """Tell of a message that was not let in."""
    told = event("request", request_id=request_id, outcome=error.code, client=client)
    log.info("refused: %s", error, extra=told)
