"""What the log is told of single requests: one line for each where [log] requests asks for it, limits, and defects."""

from __future__ import annotations

import logging

import cv2

from jetsel.daemon.job import Job
from jetsel.errors import BusyError, InternalError, JetselError, NoMemoryError, OverLimitError
from jetsel.events import event
from jetsel.wire import Answer, Failure

log = logging.getLogger("jetsel.daemon")

NO_MEMORY = -4  # cv::Error::StsNoMem, which OpenCV raises where malloc gives nothing


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
        model=[one.model for one in job.run.ran] if job.run is not None else None,
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


def unexpected(error: Exception, request_id: str | None) -> JetselError:
    """Log an exception that is none of ours, and return the error that answers the request."""
    if isinstance(error, MemoryError) or (isinstance(error, cv2.error) and error.code == NO_MEMORY):
        shortage = NoMemoryError(
            "memory ran out while this photograph was worked on: send again later or a smaller one; or raise the "
            "daemon's memory limit, or lower server.queue_megapixels or server.workers"
        )
        log.error("%s", shortage, extra=event("no-memory", request_id=request_id, code=shortage.code))
        return shortage
    told = event("request-failed", request_id=request_id)
    log.error("a request failed for a defect of jetsel's", exc_info=error, extra=told)
    return InternalError(f"jetsel failed on this request: its log has the reason under id {request_id}")
