"""The answer to a request that has ended, in words and figures."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.daemon.deciding import why
from jetsel.daemon.job import Job
from jetsel.daemon.metering.metering import Metering
from jetsel.policies import Decision
from jetsel.runtime import RequestRun
from jetsel.wire import PROTOCOL_VERSION, Answer, Explanation, Ranked, Stages


def answer(job: Job, run: RequestRun, decision: Decision, metering: Metering) -> Answer:
    """Put the decision of the job's policy into words."""
    photograph = job.photograph
    assert photograph is not None
    top = _ranked(job, decision.seen.probabilities)
    differing = metering.out_of_conditions(job.family.name)
    energy_mj, energy_reason = metering.estimate(job.family, job.policy, run, differing)
    return Answer(
        v=PROTOCOL_VERSION,
        id=job.request.id,
        family=job.family.name,
        label=top[0].label,
        wnid=top[0].wnid,
        probability=top[0].probability,
        top_k=top,
        model=decision.seen.model,
        policy=job.policy.name,
        criterion=job.request.criterion,
        because=decision.because,
        in_doubt=decision.in_doubt,
        cut_short=run.cut_short,
        ran=run.ran,
        stages_ms=_stages(job, run),
        energy_mj=energy_mj,
        energy_reason=energy_reason,
        energy_estimated=energy_mj is not None,
        out_of_conditions=differing,
        width_px=photograph.width_px,
        height_px=photograph.height_px,
        explanation=_explanation(job, decision, run, photograph, metering) if job.request.explain else None,
    )


def _ranked(job: Job, probabilities: NDArray[np.float32]) -> list[Ranked]:
    """The top-k labels; of equal probabilities the lower class number stands first."""
    labels = job.family.labels
    order = (-probabilities).argsort(kind="stable")[: job.request.top_k]
    return [
        Ranked(labels.names[i], labels.wnids[i], p)
        for i, p in zip(order.tolist(), probabilities[order].tolist(), strict=True)
    ]


def _stages(job: Job, run: RequestRun) -> Stages:
    return Stages(
        queue=job.queue_ms,
        decode=job.decode_ms,
        features=job.features_ms,
        choice=run.choice_ms,
        inference=[one.latency_ms for one in run.ran],
        total=(time.monotonic() - job.received_s) * 1e3,
        waiting=run.waiting_ms,
        input=job.input_ms,
    )


def _explanation(
    job: Job, decision: Decision, run: RequestRun, photograph: image.Photograph, metering: Metering
) -> Explanation:
    height, width = photograph.bgr.shape[:2]
    steps = [f"{one.model}: {one.because} ({one.confidence:.3f} confident)" for one in run.ran]
    features = None
    if job.features is not None:
        features = {name: float(value) for name, value in zip(job.policy.features, job.features, strict=True)}
    return Explanation(
        features=features,
        distance=decision.distance,
        steps=[*steps, decision.because],
        decoded_width_px=width,
        decoded_height_px=height,
        policy_because=why(job.family, job.request, job.policy),
        objective=job.family.objective,
        budget=metering.budget.status,
    )
