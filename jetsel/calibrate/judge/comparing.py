"""The comparison for the report: results, bounds, models, chain, and what they mean in sentences."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration
from jetsel.calibrate.fit.cross_validation import CrossValidated
from jetsel.calibrate.judge.findings import Comparison, FittedChain, Reliability, Result
from jetsel.calibrate.judge.metrics import undominated
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.judge.words import joined
from jetsel.calibrate.record.recording import Recording
from jetsel.policies.chain import NAME as CHAIN
from jetsel.policies.registry import KINDS

LEARNED = tuple(kind.name for kind in KINDS)


def sentences(
    policies: Mapping[str, Result],
    bounds: Mapping[str, Result],
    best_single: str,
    chain: FittedChain | None,
    labels_from: str | None,
) -> list[str]:
    """Return the findings, the most useful first.

    labels_from: the model whose answers stood for labels; then what is right is what agrees with it.
    """
    said = [_beside_single(policies[name], best_single) for name in LEARNED if name in policies]
    better = [
        name
        for name in LEARNED
        if name in policies and CHAIN in policies and _dominates(policies[name], policies[CHAIN])
    ]
    if better:
        said.append(f"{joined(better)} {'is' if len(better) == 1 else 'are'} both faster and more accurate than chain.")
    said += _beside_coin([policies[name] for name in LEARNED if name in policies])
    single, oracle = bounds["best single"], bounds["oracle"]
    said.append(
        f"A perfect choice of the cheapest correct model would be right on {100 * oracle.top1:.1f} % "
        f"in {_costs(oracle)}; {best_single} alone is right on {100 * single.top1:.1f} % "
        f"in {_costs(single)}."
    )
    if chain is not None:
        said.append(_chooser(chain))
    if labels_from is not None:
        said.insert(0, f"There were no labels: right means here that the answer agrees with {labels_from}'s.")
    return said


def _beside_coin(results: list[Result]) -> list[str]:
    """Which policies know anything of a photograph: those that beat models dealt at random in the same mean time."""
    gains = [(result.name, result.points_over_coin) for result in results]
    listed = [f"{name} {points:+.1f}" for name, points in gains if points is not None]
    return [f"Points of accuracy against a random mix of two models at equal cost: {joined(listed)}."] if listed else []


def _beside_single(result: Result, best_single: str) -> str:
    if result.always is not None:
        return f"{always_in_words(result)}."
    against = result.vs_best_single
    gained = against.points
    said = [
        _saving(
            against.time_ratio,
            f"of {best_single}'s time",
            f"more time than {best_single}",
            f"as much time as {best_single}",
        )
    ]
    if against.energy_ratio is not None:
        said.append(_saving(against.energy_ratio, "of its energy", "more energy", "as much energy"))
    points = f"{'gains' if gained > 0 else 'loses'} {abs(gained):.1f} points"
    said.append("is as accurate" if abs(gained) < 0.05 else points)
    return f"On your images, {result.name} {joined(said)}."


def always_in_words(result: Result) -> str:
    """Say of a policy that asked one model about everything that it did no more than that model."""
    return f"{result.name} always runs {result.always}, so it only adds the cost of choosing"


def _saving(ratio: float, of: str, more: str, same: str) -> str:
    """What a ratio to the best single model says, in whole hundredths."""
    saved = round(100 * (1 - ratio))
    if saved == 0:
        return f"takes {same}"
    return f"saves {saved} % {of}" if saved > 0 else f"takes {-saved} % {more}"


def _costs(result: Result) -> str:
    energy = "" if result.energy_mj is None else f" and {result.energy_mj.mean:.2f} mJ"
    return f"{result.time_ms.mean:.2f} ms{energy}"


def _chooser(chain: FittedChain) -> str:
    """Return whether the premodel adds anything, and what it costs."""
    energy = "" if chain.chooser_mj is None else f" and {chain.chooser_mj:.3f} mJ"
    adds = (
        f"choosing a path by {chain.k} neighbours in {len(chain.features)} features adds {chain.points:+.1f} points, "
        f"compared with one path for all images at equal cost (standard error {chain.error_points:.1f}); features and "
        f"choice take {chain.chooser_ms:.3f} ms{energy}"
    )
    return (
        f"The premodel: {adds}."
        if chain.offered
        else f"The premodel adds nothing here, so chain is not offered: {adds}."
    )


def _dominates(result: Result, other: Result) -> bool:
    faster = result.time_ms.mean < other.time_ms.mean
    return result.name != other.name and faster and result.top1 > other.top1


def compared(judge: Judge, tried: CrossValidated, draft: Calibration, *, is_offered: bool) -> Comparison:
    """Return everything that is compared.

    draft: what was fitted on all images, not decided on yet. is_offered: whether the calibration has the chain.
    """
    results = {name: judge.result(name, run) for name, run in tried.runs.items()}
    bounds = judge.bounds()
    chain = _chain(judge, tried, is_offered=is_offered)
    return Comparison(
        best_single=judge.best_single,
        policies=results,
        bounds=bounds,
        chain=chain,
        front=undominated(
            (float(one.time_ms.mean()), float(one.correct.mean()), way)
            for way, points in tried.points.items()
            for one in points
        ),
        reliability=reliability(judge.recording, draft.temperatures),
        sentences=sentences(results, bounds, judge.best_single, chain, draft.labels_from),
    )


def _chain(judge: Judge, tried: CrossValidated, *, is_offered: bool) -> FittedChain | None:
    """Return what the premodel was fitted to, and what it costs."""
    lift = tried.lift
    if lift is None:
        return None
    run = tried.runs[CHAIN]
    return FittedChain(
        features=list(lift.reading.features),
        k=lift.reading.k,
        points=lift.points,
        error_points=lift.error_points,
        offered=is_offered,
        chooser_ms=judge.chooser_ms(run),
        chooser_mj=judge.chooser_mj(run) if judge.recording.knows_energy else None,
    )


BINS = 15


def reliability(recording: Recording, temperatures: Mapping[str, float]) -> list[Reliability]:
    """Return the error of each model's confidences over the whole recording."""
    right = recording.right
    before = recording.confidences(dict.fromkeys(recording.models, 1.0))
    after = recording.confidences(temperatures)
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
