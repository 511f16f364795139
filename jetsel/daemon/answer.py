"""Builds a job's answer from its run, and logs the outcome of each request."""

from __future__ import annotations

import logging
import time

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BusyError, InternalError, JetselError, NoMemoryError, OverLimitError
from jetsel.base.events import event
from jetsel.daemon.deciding import policy_reason
from jetsel.daemon.job import Job
from jetsel.daemon.metering import Metering
from jetsel.policies import Decision
from jetsel.runtime import RequestRun
from jetsel.wire import PROTOCOL_VERSION, Answer, Explanation, Failure, Ranked


def build_answer(job: Job, run: RequestRun, decision: Decision, metering: Metering) -> Answer:
    """Return the answer to a job.

    run: the models that ran for it, and its times, which this completes. decision: what its policy returned. metering:
    estimates the energy, and reports how the board differs from its state at the calibration.
    """
    photograph = job.photograph
    assert photograph is not None
    top = _top_labels(job, decision.prediction.probabilities)
    differing = metering.out_of_conditions(job.family.name)
    energy_mj, energy_reason = metering.estimate(job.family, job.policy, run, differing)
    stages = run.stages
    stages.inference = [one.latency_ms for one in run.ran]
    stages.total = (time.monotonic() - job.received_s) * 1e3
    return Answer(
        v=PROTOCOL_VERSION,
        id=job.message.id,
        family=job.family.name,
        label=top[0].label,
        wnid=top[0].wnid,
        probability=top[0].probability,
        top_k=top,
        model=decision.prediction.model,
        policy=job.policy.name,
        because=decision.because,
        in_doubt=decision.in_doubt,
        cut_short=decision.cut_short,
        ran=run.ran,
        stages_ms=stages,
        energy_mj=energy_mj,
        energy_reason=energy_reason,
        energy_estimated=energy_mj is not None,
        out_of_conditions=differing,
        width_px=photograph.width_px,
        height_px=photograph.height_px,
        explanation=_explanation(job, decision, run, photograph, metering) if job.message.explain else None,
        wrong_at_most=decision.wrong_at_most,
        operating_point=decision.operating_point if job.front is None else job.policy.name,
    )


def _top_labels(job: Job, probabilities: NDArray[np.float32]) -> list[Ranked]:
    """Return the request's top-k labels; probabilities: (classes,). Equal ones are sorted by class number."""
    labels = job.family.on_disk.labels
    order = (-probabilities).argsort(kind="stable")[: job.message.top_k]
    return [
        Ranked(labels.names[i], labels.wnids[i], p)
        for i, p in zip(order.tolist(), probabilities[order].tolist(), strict=True)
    ]


def _explanation(
    job: Job, decision: Decision, run: RequestRun, photograph: image.Photograph, metering: Metering
) -> Explanation:
    """Return the details that a request with `explain` gets: features, steps, reasons and the power budget."""
    height, width = photograph.bgr.shape[:2]
    steps = [f"{one.model}: {one.because} ({one.confidence:.3f} confident)" for one in run.ran]
    features = None
    if run.features is not None:
        features = {name: float(value) for name, value in zip(job.policy.features, run.features, strict=True)}
    return Explanation(
        features=features,
        distance=decision.distance,
        steps=[*steps, decision.because],
        decoded_width_px=width,
        decoded_height_px=height,
        policy_because=policy_reason(job.family, job.message, job.policy),
        objective=job.family.objective,
        budget=metering.budget.status,
    )


log = logging.getLogger("jetsel.daemon")

NO_MEMORY = -4  # cv::Error::StsNoMem, which OpenCV raises if malloc gives nothing


def log_reply(job: Job, reply: Answer | Failure) -> None:
    """Log the outcome of an admitted request, and the times of its stages."""
    run, stages = job.run, reply.stages_ms if isinstance(reply, Answer) else None
    fields = event(
        "request",
        request_id=job.message.id,
        outcome="ok" if isinstance(reply, Answer) else reply.code,
        box=None if job.crop is None else job.crop.number,
        client=job.load.client,
        family=job.family.name,
        policy=job.policy.name,
        model=None if run is None else [one.model for one in run.ran],
        queue_ms=0.0 if run is None else run.stages.queue,
        decode_ms=0.0 if run is None else run.stages.decode,
        features_ms=None if run is None else run.stages.features,
        choice_ms=stages and stages.choice,
        waiting_ms=stages and stages.waiting,
        inference_ms=stages and stages.inference,
        total_ms=stages and stages.total,
    )
    words = f"answered {reply.label} by {reply.model}" if isinstance(reply, Answer) else f"failed: {reply.message}"
    log.info("%s", words, extra=fields)


def log_refusal(request_id: str | None, error: JetselError, client: str) -> None:
    """Log a message that was not admitted."""
    fields = event("request", request_id=request_id, outcome=error.code, client=client)
    log.info("refused: %s", error, extra=fields)


def warn_of_limit(error: JetselError, client: str) -> None:
    """Warn if the queue is full or a client is at its limit; the log drops repeated warnings."""
    if isinstance(error, BusyError):
        log.warning("requests are refused: %s", error, extra=event("queue-full", code=error.code))
    elif isinstance(error, OverLimitError):
        log.warning("a client is at its limit: %s", error, extra=event("client-over-limit", client=client))


def log_unexpected(error: Exception, request_id: str | None) -> JetselError:
    """Log an exception that is no JetselError; return the error for the client: NoMemoryError or InternalError."""
    if isinstance(error, MemoryError) or (isinstance(error, cv2.error) and error.code == NO_MEMORY):
        shortage = NoMemoryError(
            "memory ran out while this image was processed: send it again later, or send a smaller one; or raise the "
            "daemon's memory limit, or lower server.queue_megapixels or server.workers"
        )
        log.error("%s", shortage, extra=event("no-memory", request_id=request_id, code=shortage.code))
        return shortage
    fields = event("request-failed", request_id=request_id)
    log.error("a request failed because of a defect in jetsel", exc_info=error, extra=fields)
    return InternalError(f"jetsel failed on this request: its log has the reason under id {request_id}")
