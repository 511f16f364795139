"""Puts one criterion's comparison together for the report: results, bounds, the models and the chain, sentences."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.cross_validation import CrossValidated
from jetsel.calibrate.findings import Chain, Comparison, Lift, Multiplexing, Reliability, Staying
from jetsel.calibrate.metrics import area_under_curve, mean_interval, undominated
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.results import Judge
from jetsel.calibrate.sentences import sentences
from jetsel.policies.calibration import Calibration
from jetsel.policies.multiplexer import HELD_OUT
from jetsel.policies.multiplexer import NAME as MULTIPLEXER
from jetsel.policies.multiplexer_edge import fit_margin
from jetsel.wire import Criterion


def compared(judge: Judge, tried: CrossValidated, draft: Calibration, lift: Lift | None) -> Comparison:
    """Return everything about one criterion.

    draft: what was fitted on all photographs, not decided on yet. lift: of the chain, under the criterion that decides.
    """
    recording, criterion = judge.recording, judge.criterion
    results = {name: judge.result(name, run) for name, run in tried.runs.items()}
    bounds = judge.bounds()
    chain = _chain(judge, tried, draft, lift)
    multiplexing = _multiplexing(judge, tried, draft, chain)
    return Comparison(
        criterion=criterion,
        best_single=judge.best_single,
        policies=results,
        bounds=bounds,
        chain=chain,
        front=undominated(
            (float(one.time_ms.mean()), float(one.correct.mean()), way)
            for way, points in tried.points.items()
            for one in points
        ),
        reliability=reliability(recording, criterion, draft.temperatures),
        sentences=sentences(results, bounds, judge.best_single, chain, criterion, draft.labels_from, multiplexing),
        multiplexing=multiplexing,
    )


def _chain(judge: Judge, tried: CrossValidated, draft: Calibration, lift: Lift | None) -> Chain:
    """What the premodel was fitted to, what it costs, and below what cost one can pay.

    One that knew when to skip the first rung of the fitted cascade would save that rung's time on the photographs that
    go on from it, and on no other.
    """
    recording, spent_ms = judge.recording, judge.chooser_ms(tried.runs["chain"])
    first, *later = draft.parts["cascade"].facts[judge.criterion]
    confidence = recording.confidences(judge.criterion, draft.temperatures)[:, recording.models.index(first.model)]
    goes_on = float((confidence < first.threshold).mean()) if later else 0.0
    return Chain(
        k=draft.k,
        links=list(draft.parts["chain"].facts[judge.criterion].models),
        chooser_ms=spent_ms,
        chooser_mj=judge.chooser_mj(tried.runs["chain"]) if recording.knows_energy else None,
        pays_below_ms=goes_on * recording.costs_ms[first.model],
        lift=lift,
    )


def _multiplexing(judge: Judge, tried: CrossValidated, draft: Calibration, chain: Chain) -> Multiplexing | None:
    """What the multiplexer knows once the cheapest model ran, and what it gives beside the cascade."""
    recording, criterion = judge.recording, judge.criterion
    part = draft.parts.get(MULTIPLEXER)
    if part is None:
        return None
    cheapest, right = recording.models[0], judge.right
    chances = part.arrays[f"{criterion}.{HELD_OUT}"]
    ours, theirs = (judge.outcomes(tried.runs[name]) for name in (MULTIPLEXER, "cascade"))
    gained = 100 * (ours.correct.astype(float) - theirs.correct)
    return Multiplexing(
        reads=cheapest,
        cost_ms=recording.costs_ms[cheapest],
        area=area_under_curve(right[:, 0], chances[:, 0]),
        own_area=area_under_curve(right[:, 0], recording.confidences(criterion, draft.temperatures)[:, 0]),
        first=draft.parts["cascade"].facts[criterion][0].model,
        pays_below_ms=chain.pays_below_ms,
        points=float(gained.mean()),
        points_interval=mean_interval(gained),
        time_ratio=float(ours.time_ms.mean() / theirs.time_ms.mean()),
        stays={name: _staying(chances, right, place) for place, name in enumerate(recording.models[:-1])},
    )


def _staying(chances: NDArray[np.float32], right: NDArray[np.bool_], place: int) -> Staying:
    """How many images the model at this place may answer if the last one runs on an edge server."""
    local, edge = right[:, place], right[:, -1]
    _, stays = fit_margin(chances[:, place], chances[:, -1], local, edge)
    gained = 100 * (np.where(stays, local, edge).astype(float) - edge)
    return Staying(float(stays.mean()), float(gained.mean()), mean_interval(gained))


BINS = 15


def reliability(recording: Recording, criterion: Criterion, temperatures: Mapping[str, float]) -> list[Reliability]:
    """Return the error of each model's confidences over the whole recording."""
    right = recording.right(criterion)
    before = recording.confidences(criterion, dict.fromkeys(recording.models, 1.0))
    after = recording.confidences(criterion, temperatures)
    found = []
    for i, model in enumerate(recording.models):
        errors = [calibration_error(confidences[:, i], right[:, i]) for confidences in (before, after)]
        found.append(Reliability(model, temperatures[model], *errors))
    return found


def calibration_error(confidences: NDArray[np.float32], right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Expected calibration error: the mean gap of confidence and accuracy over equal bins (Guo et al., eq. 3).

    confidences, right: (n,).
    """
    which = np.minimum((confidences * bins).astype(int), bins - 1)
    gaps = np.bincount(which, confidences - right, bins)  # of each bin, times the photographs in it
    return float(np.abs(gaps).sum() / len(right))
