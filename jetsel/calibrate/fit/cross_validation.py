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
from jetsel.calibrate.record.replay import Outcomes, PolicyReplay, TimeFeatures, replay_each
from jetsel.calibrate.record.workers import Tell
from jetsel.policies.cascade import NAME as CASCADE
from jetsel.policies.cascade import ChosenPoints
from jetsel.policies.chain import NAME as CHAIN
from jetsel.policies.chain import ChosenReading
from jetsel.policies.kind import Kind, Table, TriedPoint
from jetsel.policies.registry import USUAL, catalogue
from jetsel.premodel.cascades import log_softmax

Learned = Mapping[str, Any]
"""Policy -> what it learned from one set of images, in its own form; None for nothing."""
Chosen = Mapping[str, Any]
"""Policy -> what is chosen on held-out images, such as the index of its operating point."""


def learn(table: Table, kinds: Sequence[Kind] = USUAL) -> Learned:
    """Fit each kind of policy to a set of images; operating points are chosen later, on held-out images."""
    return {kind.name: kind.learn(table) for kind in kinds}


def draft_calibration(
    identity: BoundIdentities, recording: Recording, temperatures: Mapping[str, float]
) -> Calibration:
    """Return a calibration without policies. identity: what the recording is valid for; may be another calibration.

    default_policy, because, figures, energy.chooser_mj and energy.reason are placeholders until policies are compared.
    """
    bound = {name: getattr(identity, name) for name in BoundIdentities.__struct_fields__}
    energies = recording.energies
    bound["identities"] = {model: identity.identities[model] for model in recording.models}
    return Calibration(
        **bound,
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
    """Return the calibration with the learned parts. unfitted: see `draft_calibration`."""
    able = [kind for kind in kinds if learned[kind.name] is not None and kind.name in chosen]
    return replace(unfitted, parts={kind.name: kind.to_part(learned[kind.name], chosen[kind.name]) for kind in able})


Points = dict[str, list[Outcomes]]  # policy -> results of its operating points on held-out images


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """The held-out results of every policy.

    runs: policy -> its replay on all images, each held out from fitting. front: the replays of the offered operating
    points. points: results of every operating point. lift: gain of the chain's neighbours, None if there are too few
    images or models. calibration: fitted on all images, with what was chosen on held-out ones.
    """

    runs: dict[str, PolicyReplay]
    front: dict[str, PolicyReplay]
    points: Points
    lift: Lift | None
    calibration: Calibration


def cross_validate(
    recording: Recording,
    unfitted: Calibration,
    fold_of: NDArray[np.int64],
    goal: Goal,
    features_ms: TimeFeatures,
    progress: Tell,
    kinds: Sequence[Kind] = USUAL,
) -> CrossValidated:
    """Return the results of each kind of policy on images that it was not fitted on.

    unfitted: the calibration without policies. Only its temperatures, one number for each model, were fitted on all
    images. fold_of: (n,), from 0.
    """
    table = recording.table(unfitted.temperatures)
    rows_of = [np.flatnonzero(fold_of == fold) for fold in range(int(fold_of.max()) + 1)]
    learned: list[Learned] = []
    for rows in rows_of:
        progress("learning", len(learned), len(rows_of))
        learned.append(learn(table.take(np.setdiff1d(np.arange(len(fold_of)), rows)), kinds))
    held = _HeldOut(recording, rows_of, [table.take(rows) for rows in rows_of])
    points = {kind.name: tried for kind in kinds if (tried := held.points(kind, learned))}
    lift, chain_points = held.read(learned, features_ms)
    points |= chain_points
    chosen = _choose(recording, kinds, points, goal, lift)
    policies = [catalogue(recording.models, assemble(unfitted, one, chosen, kinds), kinds) for one in learned]
    runs: dict[str, PolicyReplay] = {}
    for name in policies[0]:
        progress("replaying", len(runs), len(policies[0]))
        each = [policies[fold][name] for fold in fold_of]
        runs[name] = replay_each(each, recording, range(len(each)), unfitted.temperatures, recording.models[-1])
    front = {name: runs.pop(name) for name in list(runs) if name.startswith((f"{CASCADE}:", f"{CHAIN}:"))}
    progress("fitting on all images", 0, 1)
    return CrossValidated(runs, front, points, lift, assemble(unfitted, learn(table, kinds), chosen, kinds))


class _HeldOut:
    """Judges what the other folds taught on the images of each fold."""

    def __init__(self, recording: Recording, rows_of: Sequence[NDArray[np.int64]], tables: Sequence[Table]) -> None:
        self._recording, self._tables = recording, tables
        self._order = np.argsort(np.concatenate(rows_of))  # index of each image in the concatenated folds

    def points(self, kind: Kind, learned: Sequence[Learned]) -> list[Outcomes]:
        """Return the results of a policy's operating points on all images; none if it has one."""
        pairs = [(one[kind.name], table) for one, table in zip(learned, self._tables, strict=True)]
        tried = [[] if taught is None else kind.try_points(taught, table) for taught, table in pairs]
        joined = [TriedPoint.joined(parts, self._order) for parts in zip(*tried, strict=False)]
        return [Outcomes.of(self._recording, point.correct, point.ran) for point in joined]

    def read(self, learned: Sequence[Learned], features_ms: TimeFeatures) -> tuple[Lift | None, Points]:
        """Return the gain of the best reading of neighbours, and the results of its operating points."""
        recording = self._recording
        if any(one.get(CHAIN) is None for one in learned):
            return None, {}
        tried = [try_readings(one[CHAIN], table) for one, table in zip(learned, self._tables, strict=True)]
        shared = [reading for reading in tried[0] if all(reading in part for part in tried)]
        results = {reading: TriedPoint.joined([part[reading] for part in tried], self._order) for reading in shared}
        per_ms = recording.chooser_mj(1.0) if recording.objective == "energy" else 1.0
        features_cost = {reading: per_ms * features_ms(reading.features) for reading in shared if reading.features}
        lift = choose_reading(results, recording.costs(), features_cost, recording.groups)
        if lift is None:
            return None, {}
        points, chooser_ms = results[lift.reading], features_ms(lift.reading.features)
        each = zip(points.correct.T, points.ran.swapaxes(0, 1), strict=True)
        return lift, {CHAIN: [Outcomes.of(recording, correct, ran, chooser_ms) for correct, ran in each]}


def _choose(
    recording: Recording, kinds: Sequence[Kind], points: Points, goal: Goal, lift: Lift | None
) -> dict[str, Any]:
    """Return what is chosen for each policy on held-out images: operating points and the chain's reading."""
    singles = [Outcomes.of_model(recording, column) for column in range(len(recording.models))]
    reference = singles[goal.reference(singles)]
    chosen: dict[str, Any] = {kind.name: None for kind in kinds if kind.name != CHAIN}
    chosen |= {name: goal.choose_point(tried, reference) for name, tried in points.items()}
    fronts = {
        name: tuple(front_places(points[name], recording.objective)) for name in (CASCADE, CHAIN) if name in points
    }
    chosen[CASCADE] = ChosenPoints(chosen[CASCADE], fronts[CASCADE])
    if lift is not None:
        front = fronts[CHAIN] if lift.adds else ()
        chosen[CHAIN] = ChosenReading(lift.reading.features, lift.reading.k, chosen[CHAIN], front)
    return chosen


APART = 0.88  # largest ratio of the costs of neighbouring points; closer points would only lengthen the front


def front_places(points: Sequence[Outcomes], objective: Objective) -> list[int]:
    """Return the indices of the undominated points that are far enough apart, the most expensive first."""
    cost = [float(point.cost(objective).mean()) for point in points]
    accuracy = [float(point.correct.mean()) for point in points]
    places: list[int] = []
    for place in sorted(range(len(points)), key=lambda place: (cost[place], -accuracy[place])):
        if not places or (accuracy[place] > accuracy[places[-1]] and APART * cost[place] >= cost[places[-1]]):
            places.append(place)
    return places[::-1]


def expected(recording: Recording, run: PolicyReplay, calibration: Calibration) -> ExpectedStatistics:
    """Return the expected distributions of features and confidences. run: the default policy's, on the recording."""
    confidences = {}
    for place, model in enumerate(recording.models):
        reached = run.ran[:, place]
        if reached.any():
            logits = recording.logits[place][reached].astype(np.float32)
            sure = np.exp(log_softmax(logits, calibration.temperatures[model])).max(axis=1)
            confidences[model] = Confidence(float(sure.mean()), float(sure.std()))
    columns = zip(recording.feature_names, recording.features.T, strict=True)
    return ExpectedStatistics({name: fit_bins(values) for name, values in columns}, confidences)
