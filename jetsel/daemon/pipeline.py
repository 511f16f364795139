"""One request end to end: the product on one page. Bytes to photograph, features, policy, models, answer."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.daemon.job import Job
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.metering.telling import budget_status
from jetsel.errors import JetselError
from jetsel.features import extract
from jetsel.policies import Decision, Evidence
from jetsel.runtime import Flight
from jetsel.wire import PROTOCOL_VERSION, Answer, Explanation, Ranked, Stages


def prepare(job: Job) -> Flight:
    """Decode the photograph, compute what its policy reads, and return the flight that its policy is to make.

    Raises the JetselError that answers the request instead.
    """
    began = time.monotonic()
    job.queue_ms = (began - job.received_s) * 1e3
    request, family, limits = job.request, job.family, job.snapshot.limits
    if request.pixels is None:
        photograph = image.decode(job.data, limits, family.decode_px, job.measured)
    else:
        photograph = image.from_pixels(job.data, request.pixels, limits)
    decoded = time.monotonic()
    job.decode_ms = (decoded - began) * 1e3
    features = None
    if job.policy.features:
        features = extract(photograph.bgr, job.policy.features)
        job.features_ms = (time.monotonic() - decoded) * 1e3
        if request.explain:
            job.features = {name: float(value) for name, value in zip(job.policy.features, features, strict=True)}
    job.photograph = photograph
    evidence, inputs = Evidence(features, job.fallback), _inputs(job, photograph)
    flight = job.flight = Flight(job.policy, evidence, request.criterion, inputs, job.deadline_s)
    flight.is_counted = not job.is_probe
    return flight


def _inputs(job: Job, photograph: image.Photograph) -> Callable[[str], NDArray[np.float32]]:
    """Return what gives each model its input, made once for all models whose input is alike."""
    specs, made = job.family.specs, dict[image.InputSpec, NDArray[np.float32]]()

    def input_of(model: str) -> NDArray[np.float32]:
        spec = specs[model]
        found = made.get(spec)
        if found is None:
            found = made[spec] = image.model_input(photograph, spec)
        return found

    return input_of


def answer(job: Job, metering: Metering) -> Answer:
    """Put the ended flight's decision into words; raises the JetselError that it ended with instead."""
    flight, photograph = job.flight, job.photograph
    assert flight is not None
    assert photograph is not None
    decision = flight.outcome
    if isinstance(decision, JetselError):
        raise decision
    assert isinstance(decision, Decision)
    top = _ranked(job, decision.seen.probabilities)
    energy_mj, energy_reason = metering.estimate(job.family, job.policy, flight)
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
        cut_short=flight.cut_short,
        ran=flight.ran,
        stages_ms=_stages(job, flight),
        energy_mj=energy_mj,
        energy_reason=energy_reason,
        energy_estimated=energy_mj is not None,
        out_of_conditions=metering.out_of_conditions(job.family.name),
        width_px=photograph.width_px,
        height_px=photograph.height_px,
        explanation=_explanation(job, decision, flight, photograph, metering) if job.request.explain else None,
    )


def _ranked(job: Job, probabilities: NDArray[np.float32]) -> list[Ranked]:
    """The top-k labels; of equal probabilities the lower class number stands first."""
    labels = job.family.labels
    order = (-probabilities).argsort(kind="stable")[: job.request.top_k]
    return [
        Ranked(labels.names[i], labels.wnids[i], p)
        for i, p in zip(order.tolist(), probabilities[order].tolist(), strict=True)
    ]


def _stages(job: Job, flight: Flight) -> Stages:
    return Stages(
        queue=round(job.queue_ms, 4),
        decode=round(job.decode_ms, 4),
        features=None if job.features_ms is None else round(job.features_ms, 4),
        choice=round(flight.choice_ms, 4),
        inference=[round(run.latency_ms, 4) for run in flight.ran],
        total=round((time.monotonic() - job.received_s) * 1e3, 4),
        waiting=round(flight.waiting_ms, 4),
    )


def _explanation(
    job: Job, decision: Decision, flight: Flight, photograph: image.Photograph, metering: Metering
) -> Explanation:
    height, width = photograph.bgr.shape[:2]
    steps = [f"{run.model}: {run.because} ({run.confidence:.3f} confident)" for run in flight.ran]
    return Explanation(
        features=job.features,
        distance=decision.distance,
        steps=[*steps, decision.because],
        decoded_width_px=width,
        decoded_height_px=height,
        policy_because=job.family.why(job.request),
        objective=job.family.objective,
        budget=budget_status(metering),
    )
