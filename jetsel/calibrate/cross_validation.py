"""Every way to choose, learned in turn from all folds but one and replayed on that one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel import premodel
from jetsel.calibrate.assemble import Chosen, Identity, assemble
from jetsel.calibrate.fit.soundness import fit_soundness
from jetsel.calibrate.goal import Goal, Outcomes
from jetsel.calibrate.held_out import Learned, fit_temperatures, learn, try_out
from jetsel.calibrate.neighbourhood import Neighbourhood
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import Run, replay_all
from jetsel.policies.calibration import Calibration
from jetsel.policies.catalogue import CRITERIA, calibrated
from jetsel.policies.kind import Plan
from jetsel.policies.registry import KINDS
from jetsel.policies.single import Single
from jetsel.wire import Criterion

Points = dict[str, list[Outcomes]]  # policy -> its operating points, each on the held-out photographs
Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """What cross-validation gave for one criterion.

    runs: policy -> its outcome on every photograph, each under a calibration that had not seen it. points: the same
    for every operating point that was tried. chosen: what all photographs decide.
    """

    runs: dict[str, Run]
    points: Points
    chosen: Chosen


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
            learned[criterion].append(learn(train, criterion, plan, temperatures))
    found = {}
    for number, criterion in enumerate(CRITERIA):
        progress("replaying", (len(CRITERIA) + number) * len(folds), steps)
        found[criterion] = _one_criterion(recording, fold_of, near, learned[criterion], goals[criterion], identity)
    progress("replaying", steps, steps)
    return found


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
    right, costs = recording.right(criterion), recording.costs()
    links, _ = premodel.select_models(right, costs, recording.models, learned[0].plan.theta_points)
    chain_right = near.choices(right, [recording.models.index(model) for model in links], costs).right

    def chosen(rows: NDArray[np.bool_]) -> dict[str, Any]:
        """What these photographs decide."""
        soundness = fit_soundness(near.mean_distance[rows], chain_right[rows], right[rows, -1])
        places = {
            policy: goal.best([point.of(rows) for point in tried], rival.of(rows)) for policy, tried in points.items()
        }
        return {"chain": soundness, **places}

    runs: dict[str, list[Run]] = {}
    for fold, one in zip(folds, learned, strict=True):
        calibration = assemble(identity, {criterion: one}, {criterion: chosen(fold_of != fold)})
        for name, run in _replayed(calibration, recording, np.flatnonzero(fold_of == fold), criterion):
            runs.setdefault(name, []).append(run)
    everywhere = chosen(np.ones(len(fold_of), bool))
    joined = {name: _joined(parts, fold_of, folds) for name, parts in runs.items()}
    return CrossValidated(joined, points, everywhere)


def _points(
    learned: Sequence[Learned], held: Sequence[Recording], fold_of: NDArray[np.int64], folds: NDArray[np.int64]
) -> Points:
    """The operating points of each policy that has several."""
    points: Points = {}
    for kind in KINDS:
        tried = [try_out(kind, one, photographs) for one, photographs in zip(learned, held, strict=True)]
        if all(tried):
            points[kind.name] = _scattered(tried, fold_of, folds)
    return points


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
    policies = [*(Single(model) for model in recording.models), *calibrated(calibration)[criterion].values()]
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
    return Run(**arrays, choice_ms=choice_ms, features=parts[0].features)  # type: ignore[arg-type]
