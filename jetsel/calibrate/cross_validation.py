"""Every way to choose, learned in turn from all folds but one and replayed on that one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.assemble import Identity, Places, assemble
from jetsel.calibrate.fit.algorithm1 import select_models
from jetsel.calibrate.fit.boosted import grow
from jetsel.calibrate.fit.soundness import fit_soundness
from jetsel.calibrate.goal import Goal, Outcomes
from jetsel.calibrate.held_out import (
    Learned,
    Plan,
    costs_of,
    fit_temperatures,
    learn,
    try_boosted,
    try_cascades,
    try_embedding,
    try_skipping,
)
from jetsel.calibrate.neighbourhood import Neighbourhood
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import Run, replay_all
from jetsel.policies.catalogue import CRITERIA, calibrated
from jetsel.policies.single import Single
from jetsel.premodel import Calibration, Soundness, Trees
from jetsel.wire import Criterion

Points = dict[str, list[Outcomes]]  # way to choose -> its operating points, each on the held-out photographs
Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """What cross-validation gave for one criterion.

    runs: policy -> its outcome on every photograph, each under a calibration that had not seen it. points: the same
    for every operating point that was tried, by way to choose. places: those chosen on all photographs.
    """

    runs: dict[str, Run]
    points: Points
    places: Places
    soundness: Soundness


def cross_validate(
    recording: Recording,
    fold_of: NDArray[np.int64],
    near: Neighbourhood,
    plan: Plan,
    goals: Mapping[Criterion, Goal],
    identity: Identity,
    progress: Progress,
) -> dict[Criterion, CrossValidated]:
    """Return what each policy gives on photographs that nothing of it was fitted on, by criterion."""
    folds = np.unique(fold_of)
    steps = 2 * len(folds) * len(CRITERIA)
    learned: dict[Criterion, list[Learned]] = {criterion: [] for criterion in CRITERIA}
    for fold in folds:
        train = recording.take(np.flatnonzero(fold_of != fold))
        temperatures = fit_temperatures(train)
        for criterion in CRITERIA:
            progress("learning", sum(map(len, learned.values())), steps)
            learned[criterion].append(learn(train, criterion, plan, temperatures, trees_of(train, criterion, plan)))
    found = {}
    for number, criterion in enumerate(CRITERIA):
        progress("replaying", (len(CRITERIA) + number) * len(folds), steps)
        found[criterion] = _one_criterion(recording, fold_of, near, learned[criterion], goals[criterion], identity)
    progress("replaying", steps, steps)
    return found


def trees_of(train: Recording, criterion: Criterion, plan: Plan) -> Trees | None:
    """Grow the trees of `boosted`, None where scikit-learn is not installed."""
    columns = [train.feature_names.index(name) for name in plan.features]
    return grow(train.features[:, columns], train.right(criterion))


def choose_places(points: Points, rival: Outcomes, goal: Goal) -> Places:
    """The operating point of each way to choose that serves the goal best."""

    def best(way: str) -> int | None:
        return goal.best(points[way], rival) if points[way] else None

    return Places(
        cascade=goal.best(points["cascade"], rival),
        averaged=goal.best(points["cascade-averaged"], rival),
        skipping=goal.best(points["cascade-skipping"], rival) if "cascade-skipping" in points else 0,
        embedding=best("embedding"),
        boosted=best("boosted"),
    )


def best_single(recording: Recording, criterion: Criterion) -> tuple[str, Outcomes]:
    """The most accurate model, of equals the cheapest, and what it gives."""
    right = recording.right(criterion)
    column = int(np.lexsort((recording.costs(), -right.mean(axis=0)))[0])
    model = recording.models[column]
    energy_mj = np.full(len(right), recording.costs("energy")[column]) if recording.knows_energy else None
    return model, Outcomes(right[:, column], np.full(len(right), recording.costs_ms[model]), energy_mj)


def _one_criterion(
    recording: Recording,
    fold_of: NDArray[np.int64],
    near: Neighbourhood,
    learned: Sequence[Learned],
    goal: Goal,
    identity: Identity,
) -> CrossValidated:
    criterion, folds = learned[0].criterion, np.unique(fold_of)
    held = [recording.take(np.flatnonzero(fold_of == fold)) for fold in folds]
    points = _points(learned, held, fold_of, folds)
    _, rival = best_single(recording, criterion)
    everywhere = choose_places(points, rival, goal)
    points["cascade-skipping"] = _scattered(
        [
            try_skipping(one, one.cascades[everywhere.cascade], photographs)
            for one, photographs in zip(learned, held, strict=True)
        ],
        fold_of,
        folds,
    )
    everywhere = choose_places(points, rival, goal)
    right = recording.right(criterion)
    links, _ = select_models(right, costs_of(recording), recording.models, learned[0].plan.theta_points)
    columns = [recording.models.index(model) for model in links]
    chain_right = near.choices(right, columns, costs_of(recording)).right

    def soundness(rows: NDArray[np.bool_]) -> Soundness:
        return fit_soundness(near.mean_distance[rows], chain_right[rows], right[rows, -1])

    runs: dict[str, list[Run]] = {}
    for fold, one in zip(folds, learned, strict=True):
        others = fold_of != fold
        elsewhere = {way: [point.of(others) for point in tried] for way, tried in points.items()}
        places = choose_places(elsewhere, rival.of(others), goal)
        calibration = assemble(identity, {criterion: one}, {criterion: places}, {criterion: soundness(others)})
        for name, run in _replayed(calibration, recording, np.flatnonzero(fold_of == fold), criterion):
            runs.setdefault(name, []).append(run)
    return CrossValidated(
        runs={name: _joined(parts, fold_of, folds) for name, parts in runs.items()},
        points=points,
        places=everywhere,
        soundness=soundness(np.ones(len(fold_of), bool)),
    )


def _points(
    learned: Sequence[Learned], held: Sequence[Recording], fold_of: NDArray[np.int64], folds: NDArray[np.int64]
) -> Points:
    pairs = list(zip(learned, held, strict=True))
    tried = {
        "cascade": [try_cascades(one, photographs, averaged=False) for one, photographs in pairs],
        "cascade-averaged": [try_cascades(one, photographs, averaged=True) for one, photographs in pairs],
        "embedding": [try_embedding(one, photographs) for one, photographs in pairs],
        "boosted": [try_boosted(one, photographs) for one, photographs in pairs],
    }
    return {way: _scattered(parts, fold_of, folds) for way, parts in tried.items()}


def _scattered(parts: Sequence[list[Outcomes]], fold_of: NDArray[np.int64], folds: NDArray[np.int64]) -> list[Outcomes]:
    """Each operating point's outcomes of all folds, at the places of their photographs."""
    order = _order(fold_of, folds)

    def joined(each: Sequence[NDArray[Any] | None]) -> Any:
        known = [one for one in each if one is not None]
        return np.concatenate(known)[order] if len(known) == len(each) else None

    return [
        Outcomes(
            joined([part[place].correct for part in parts]),
            joined([part[place].time_ms for part in parts]),
            joined([part[place].energy_mj for part in parts]),
        )
        for place in range(len(parts[0]))
    ]


def _order(fold_of: NDArray[np.int64], folds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each photograph stands in its folds put one after the other, (n,)."""
    order: NDArray[np.int64] = np.argsort(np.concatenate([np.flatnonzero(fold_of == fold) for fold in folds]))
    return order


def _replayed(
    calibration: Calibration, recording: Recording, rows: NDArray[np.int64], criterion: Criterion
) -> Iterator[tuple[str, Run]]:
    """Each policy of the calibration, and each single model, on some photographs."""
    policies = [*(Single(model) for model in recording.models), *calibrated(calibration, criterion)]
    for policy in policies:
        yield (
            policy.name,
            replay_all(policy, recording, rows.tolist(), criterion, calibration.temperatures, recording.models[-1]),
        )


def _joined(parts: Sequence[Run], fold_of: NDArray[np.int64], folds: NDArray[np.int64]) -> Run:
    """One run of the folds' runs, at the places of their photographs."""
    order = _order(fold_of, folds)

    def joined(name: str) -> NDArray[np.generic]:
        whole: NDArray[np.generic] = np.concatenate([getattr(part, name) for part in parts])[order]
        return whole

    names = ("answered", "is_top5", "models_ms", "ran", "in_doubt")
    arrays: Mapping[str, NDArray[np.generic]] = {name: joined(name) for name in names}
    choice_ms = float(np.median([part.choice_ms for part in parts]))
    return Run(**arrays, choice_ms=choice_ms, reads_features=parts[0].reads_features)  # type: ignore[arg-type]
