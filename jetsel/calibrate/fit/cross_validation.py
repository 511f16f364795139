"""Fit every policy on all folds but one, replay it on the fold held out, and fit it on all images."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from jetsel.artefact.calibration import (
    BoundIdentities,
    Calibration,
    CalibrationImages,
    Confidence,
    ExpectedStatistics,
    MeasuredEnergy,
    fit_bins,
)
from jetsel.calibrate.fit.chain import Lift, choose_reading, try_readings
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.record.recording import Objective, Recording
from jetsel.calibrate.record.replay import Outcomes, PolicyReplay, TimeFeatures, replay_each, share_choice_times
from jetsel.calibrate.record.workers import Reporter
from jetsel.policies.cascade import NAME as CASCADE
from jetsel.policies.cascade import ChosenPoints
from jetsel.policies.chain import NAME as CHAIN
from jetsel.policies.chain import ChosenReading
from jetsel.policies.kind import Kind, Table, TriedPoint
from jetsel.policies.registry import USUAL, catalogue
from jetsel.premodel.cascades import log_softmax

Learned = Mapping[str, Any]
"""Policy -> what its Kind learned from one set of images, which only that Kind reads; None if it cannot be fitted."""
Chosen = Mapping[str, Any]
"""Policy -> what was chosen for it on held-out images, such as the index of its operating point."""


def learn(table: Table, kinds: Sequence[Kind] = USUAL) -> Learned:
    """Fit each kind of policy to the images of `table`; its operating point is chosen later, on held-out images."""
    return {kind.name: kind.learn(table) for kind in kinds}


def draft_calibration(
    identity: BoundIdentities, recording: Recording, temperatures: Mapping[str, float]
) -> Calibration:
    """Return a calibration without policies. identity: hashes that bind it to its family, models and features.

    default_policy, because, figures, energy.chooser_mj and energy.reason are placeholders until policies are compared.
    """
    bindings = {name: getattr(identity, name) for name in BoundIdentities.__struct_fields__}
    energies = recording.energies
    bindings["identities"] = {model: identity.identities[model] for model in recording.models}
    return Calibration(
        **bindings,
        temperatures=dict(temperatures),
        costs_ms=dict(recording.costs_ms),
        energy=MeasuredEnergy()
        if energies is None
        else MeasuredEnergy(mean_mj=dict(energies.mean_mj), half_width_mj=dict(energies.half_width_mj)),
        objective=recording.objective,
        default_policy="cascade",
        because="not compared yet",
        figures={},
        created=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        images=CalibrationImages(count=len(recording.classes)),
    )


def assemble(unfitted: Calibration, learned: Learned, chosen: Chosen, kinds: Sequence[Kind] = USUAL) -> Calibration:
    """Return `unfitted`, from `draft_calibration`, with each policy that has both a `learned` and a `chosen` value."""
    fitted = [kind for kind in kinds if learned[kind.name] is not None and kind.name in chosen]
    return replace(unfitted, parts={kind.name: kind.to_part(learned[kind.name], chosen[kind.name]) for kind in fitted})


Points = dict[str, list[Outcomes]]  # policy -> held-out results of its operating points, sorted by cost


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """The held-out results of every policy; an image is replayed by policies that were fitted without it."""

    runs: dict[str, PolicyReplay]  # policy -> its replay on all images
    front: dict[str, PolicyReplay]  # the same for operating points that requests can name, as in cascade:1
    points: Points  # of every policy that has several operating points
    lift: Lift | None  # gain of the chain's neighbours, None if there are too few images or models
    calibration: Calibration  # fitted on all images, with settings that were chosen on held-out ones


def cross_validate(
    recording: Recording,
    unfitted: Calibration,
    fold_of: NDArray[np.int64],
    goal: Goal,
    time_features: TimeFeatures,
    report: Reporter,
    kinds: Sequence[Kind] = USUAL,
) -> CrossValidated:
    """Return the results of each kind of policy on images that it was not fitted on.

    unfitted: from `draft_calibration`; only its temperatures, one for each model, were fitted on all images. fold_of:
    the fold of each image, (n,), from 0. goal: selects operating points. report: receives the progress.
    """
    table = recording.table(unfitted.temperatures)
    rows_of = [np.flatnonzero(fold_of == fold) for fold in range(int(fold_of.max()) + 1)]
    by_fold: list[Learned] = []
    for rows in rows_of:
        report("learning", len(by_fold), len(rows_of))
        by_fold.append(learn(table.take(np.setdiff1d(np.arange(len(fold_of)), rows)), kinds))
    held_out = HeldOut(recording, rows_of, [table.take(rows) for rows in rows_of])
    points = {kind.name: tried for kind in kinds if (tried := held_out.evaluate_points(kind, by_fold))}
    lift, chain_points = held_out.evaluate_readings(by_fold, time_features)
    points |= chain_points
    chosen = _choose_settings(recording, kinds, points, goal, lift)
    policies = [catalogue(recording.models, assemble(unfitted, learned, chosen, kinds), kinds) for learned in by_fold]
    runs: dict[str, PolicyReplay] = {}
    for name in policies[0]:
        report("replaying", len(runs), len(policies[0]))
        fitted = [policies[fold][name] for fold in fold_of]
        runs[name] = replay_each(fitted, recording, range(len(fitted)), unfitted.temperatures, recording.models[-1])
    runs = share_choice_times(runs)
    front = {name: runs.pop(name) for name in list(runs) if name.startswith((f"{CASCADE}:", f"{CHAIN}:"))}
    report("fitting on all images", 0, 1)
    return CrossValidated(runs, front, points, lift, assemble(unfitted, learn(table, kinds), chosen, kinds))


class HeldOut:
    """Evaluates on each fold what was learned on the other folds. `by_fold` has one Learned for each held-out fold."""

    def __init__(self, recording: Recording, rows_of: Sequence[NDArray[np.int64]], tables: Sequence[Table]) -> None:
        self._recording, self._tables = recording, tables
        self._order = np.argsort(np.concatenate(rows_of))  # puts concatenated folds in the recording's order

    def evaluate_points(self, kind: Kind, by_fold: Sequence[Learned]) -> list[Outcomes]:
        """Return the held-out results of a policy's operating points, empty if it has no points to choose from."""
        pairs = [(learned[kind.name], table) for learned, table in zip(by_fold, self._tables, strict=True)]
        points_by_fold = [[] if fitted is None else kind.try_points(fitted, table) for fitted, table in pairs]
        joined = [TriedPoint.joined(fold_points, self._order) for fold_points in zip(*points_by_fold, strict=False)]
        return [Outcomes.of(self._recording, point.correct, point.ran) for point in joined]

    def evaluate_readings(self, by_fold: Sequence[Learned], time_features: TimeFeatures) -> tuple[Lift | None, Points]:
        """Return the Lift of the best way to find neighbours, and the results of its operating points, under CHAIN.

        None and an empty mapping: the chain cannot be fitted, or there are too few images for neighbours.
        """
        recording = self._recording
        if any(learned.get(CHAIN) is None for learned in by_fold):
            return None, {}
        tried = [try_readings(learned[CHAIN], table) for learned, table in zip(by_fold, self._tables, strict=True)]
        shared = [reading for reading in tried[0] if all(reading in fold for fold in tried)]
        results = {reading: TriedPoint.joined([fold[reading] for fold in tried], self._order) for reading in shared}
        per_ms = recording.chooser_mj(1.0) if recording.objective == "energy" else 1.0
        features_cost = {reading: per_ms * time_features(reading.features) for reading in shared if reading.features}
        lift = choose_reading(results, recording.costs(), features_cost, recording.groups)
        if lift is None:
            return None, {}
        points, chooser_ms = results[lift.reading], time_features(lift.reading.features)
        per_price = zip(points.correct.T, points.ran.swapaxes(0, 1), strict=True)
        return lift, {CHAIN: [Outcomes.of(recording, correct, ran, chooser_ms) for correct, ran in per_price]}


def _choose_settings(
    recording: Recording, kinds: Sequence[Kind], points: Points, goal: Goal, lift: Lift | None
) -> dict[str, Any]:
    """Return the settings of each policy, chosen on held-out images: operating points, and the chain's neighbours."""
    singles = [Outcomes.of_model(recording, column) for column in range(len(recording.models))]
    reference = singles[goal.reference(singles)]
    chosen: dict[str, Any] = {kind.name: None for kind in kinds if kind.name != CHAIN}
    chosen |= {name: goal.choose_point(tried, reference) for name, tried in points.items()}
    fronts = {
        name: tuple(front_indices(points[name], recording.objective)) for name in (CASCADE, CHAIN) if name in points
    }
    chosen[CASCADE] = ChosenPoints(chosen[CASCADE], fronts[CASCADE])
    if lift is not None:
        front = fronts[CHAIN] if lift.adds else ()
        chosen[CHAIN] = ChosenReading(lift.reading.features, lift.reading.k, chosen[CHAIN], front)
    return chosen


MOST_COST_RATIO = 0.88  # of a point to the next more expensive one; closer points would only lengthen the list


def front_indices(points: Sequence[Outcomes], objective: Objective) -> list[int]:
    """Return the indices of the operating points to offer: undominated, far enough apart, most expensive first."""
    cost = [float(point.cost(objective).mean()) for point in points]
    accuracy = [float(point.correct.mean()) for point in points]
    front: list[int] = []
    for index in sorted(range(len(points)), key=lambda index: (cost[index], -accuracy[index])):
        if not front or (accuracy[index] > accuracy[front[-1]] and MOST_COST_RATIO * cost[index] >= cost[front[-1]]):
            front.append(index)
    return front[::-1]


def expected_statistics(recording: Recording, run: PolicyReplay, calibration: Calibration) -> ExpectedStatistics:
    """Return the distributions of features and confidences, by which the daemon detects drift.

    run: the default policy's replay on the recording; a model's confidence counts for the images that it ran on.
    """
    confidences = {}
    for column, model in enumerate(recording.models):
        has_run = run.ran[:, column]
        if has_run.any():
            logits = recording.logits[column][has_run].astype(np.float32)
            confidence = np.exp(log_softmax(logits, calibration.temperatures[model])).max(axis=1)
            confidences[model] = Confidence(float(confidence.mean()), float(confidence.std()))
    columns = zip(recording.feature_names, recording.features.T, strict=True)
    return ExpectedStatistics({name: fit_bins(values) for name, values in columns}, confidences)
