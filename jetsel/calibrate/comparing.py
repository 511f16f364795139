"""Puts one criterion's comparison together for the report: results, bounds, the models and the chain, sentences."""

from __future__ import annotations

from jetsel.calibrate.cross_validation import CrossValidated
from jetsel.calibrate.findings import Chain, Comparison, Lift, Multiplexing
from jetsel.calibrate.metrics import area_under_curve, mean_interval, undominated
from jetsel.calibrate.reliability import reliability
from jetsel.calibrate.results import Judge
from jetsel.calibrate.sentences import sentences
from jetsel.policies.calibration import Calibration


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
    """What the multiplexer tells of the fitted cascade's first rung, and what it gives before that cascade."""
    recording, mux = judge.recording, judge.recording.multiplexer
    if mux is None or "multiplexer-cascade" not in tried.runs:
        return None
    first = draft.parts["cascade"].facts[judge.criterion][0].model
    place = recording.models.index(first)
    right = judge.right[:, place]
    ours, theirs = (judge.outcomes(tried.runs[name]) for name in ("multiplexer-cascade", "cascade"))
    gained = 100 * (ours.correct.astype(float) - theirs.correct)
    knows = first in mux.models
    return Multiplexing(
        cost_ms=mux.cost_ms,
        first=first,
        area=area_under_curve(right, mux.chances[:, mux.models.index(first)]) if knows else None,
        own_area=area_under_curve(right, recording.confidences(judge.criterion, draft.temperatures)[:, place]),
        pays_below_ms=chain.pays_below_ms,
        points=float(gained.mean()),
        points_interval=mean_interval(gained),
        time_ratio=float(ours.time_ms.mean() / theirs.time_ms.mean()),
    )
