"""Puts one criterion's comparison together for the report: results, bounds, the paper's figures, sentences."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from jetsel.calibrate.cross_validation import CrossValidated
from jetsel.calibrate.findings import Comparison, Differing
from jetsel.calibrate.goal import Outcomes
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.reliability import reliability
from jetsel.calibrate.replay import Run
from jetsel.calibrate.results import Judge
from jetsel.calibrate.sentences import sentences
from jetsel.calibrate.studies import Scene, study_chain
from jetsel.policies.calibration import Calibration
from jetsel.premodel import optimum_votes

MOST_DIFFERING = 200  # photographs listed in the report


def compared(
    scene: Scene,
    judge: Judge,
    tried: CrossValidated,
    calibration: Calibration,
    k_accuracy: dict[int, float],
) -> Comparison:
    """Return everything about one criterion. calibration: the one on all photographs, for temperatures and labels."""
    recording, criterion = scene.recording, scene.criterion
    results = {name: judge.result(name, run) for name, run in tried.runs.items()}
    bounds = judge.bounds()
    optimal = optimum_votes(scene.right, recording.costs()).mean(axis=0)
    _, steps = scene.links()
    limit_ms = _pays_below_ms(scene, calibration)
    chain = study_chain(scene, tried.soundness, k_accuracy, dict(calibration.temperatures), limit_ms)
    return Comparison(
        criterion=criterion,
        best_single=judge.best_single,
        policies=results,
        bounds=bounds,
        optimal={model: float(share) for model, share in zip(recording.models, optimal, strict=True)},
        steps=steps,
        chain=chain,
        front=_front(tried),
        reliability=reliability(recording, criterion, calibration.temperatures),
        sentences=sentences(results, bounds, judge.best_single, chain, criterion, calibration.labels_from),
    )


def _pays_below_ms(scene: Scene, calibration: Calibration) -> float:
    """What a chooser may cost at most that would know when to skip the first rung of the fitted cascade.

    It saves that rung's time on the photographs that go on from it, and on no other.
    """
    first, *later = calibration.parts["cascade"].facts[scene.criterion]
    if not later:
        return 0.0
    column = scene.recording.models.index(first.model)
    confidence = scene.recording.confidences(scene.criterion, calibration.temperatures)[:, column]
    return float((confidence < first.threshold).mean()) * scene.recording.costs_ms[first.model]


def _front(tried: CrossValidated) -> list[tuple[float, float, str]]:
    """The operating points of every way to choose that no other beats in both time and accuracy, fastest first."""
    points: list[tuple[Outcomes, str]] = [(one, way) for way, tried_ones in tried.points.items() for one in tried_ones]
    judged = sorted(
        ((float(one.time_ms.mean()), float(one.correct.mean()), way) for one, way in points),
        key=lambda point: (point[0], -point[1]),
    )
    front: list[tuple[float, float, str]] = []
    for point in judged:
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front


def differing(recording: Recording, runs: Mapping[str, Run], names: tuple[str, ...]) -> list[Differing]:
    """Photographs on which policies give different answers, at most 200 in the order of the recording.

    Single models are left out: they differ on too many.
    """
    policies = [name for name in runs if not name.startswith("single:")]
    answered = np.stack([runs[name].answered for name in policies])
    rows = np.flatnonzero((answered != answered[0]).any(axis=0))[:MOST_DIFFERING]

    folder = os.path.commonpath(recording.paths) if len(recording.paths) > 1 else ""

    def called(number: int) -> str:
        return names[number] if number >= 0 else "refused"

    return [
        Differing(
            os.path.relpath(recording.paths[row], folder) if recording.paths else f"photograph {row}",
            called(int(recording.classes[row])),
            {name: called(int(answered[i, row])) for i, name in enumerate(policies)},
        )
        for row in rows
    ]
