"""Cross-validation: fit every policy on all folds but one, and replay it on the fold held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.assemble import BoundIdentities, Chosen, LearnedParts, assemble, learn, try_out
from jetsel.calibrate.fit.chain import Lift, TriedReading, choose_reading, features_costs, join_folds, try_readings
from jetsel.calibrate.fit.goal import Goal, Outcomes
from jetsel.calibrate.record.recording import Objective, Recording
from jetsel.calibrate.record.replay import PolicyReplay, Scores, TimeFeatures, replay_all
from jetsel.policies.cascade import NAME as CASCADE
from jetsel.policies.cascade import ChosenPoints
from jetsel.policies.chain import NAME as CHAIN
from jetsel.policies.chain import ChosenReading
from jetsel.policies.kind import Kind, Table
from jetsel.policies.registry import USUAL, catalogue

Points = dict[str, list[Outcomes]]  # policy -> results of its operating points on held-out images
Progress = Callable[[str, int, int], None]  # name of the phase, steps done, steps in all


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """The held-out results of every policy.

    runs: policy -> its replay on all images, each held out from fitting. front: the replays of the offered operating
    points. points: results of every operating point. chosen: what is chosen on held-out images for each policy. lift:
    gain of the chain's neighbours, None if there are too few images or models.
    """

    runs: dict[str, PolicyReplay]
    front: dict[str, PolicyReplay]
    points: Points
    chosen: Chosen
    lift: Lift | None


def cross_validate(
    recording: Recording,
    table: Table,
    fold_of: NDArray[np.int64],
    goal: Goal,
    identity: BoundIdentities,
    features_ms: TimeFeatures,
    progress: Progress,
    kinds: Sequence[Kind] = USUAL,
) -> CrossValidated:
    """Return the results of each kind of policy on images that it was not fitted on.

    table: of the recording. Only the temperatures, one number for each model, were fitted on all images.
    """
    rows_of = [np.flatnonzero(fold_of == fold) for fold in np.unique(fold_of)]
    order = np.argsort(np.concatenate(rows_of))  # index of each image in the concatenated folds
    learned: list[LearnedParts] = []
    for rows in rows_of:
        progress("learning", len(learned), 2 * len(rows_of))
        learned.append(learn(table.take(np.setdiff1d(np.arange(len(fold_of)), rows)), kinds))
    held = [table.take(rows) for rows in rows_of]
    points = _points(recording, learned, held, order)
    lift, chain_points = _read(recording, learned, held, order, features_ms)
    chosen = _choose(recording, kinds, points | chain_points, goal, lift)
    runs: dict[str, list[PolicyReplay]] = {}
    for done, (rows, one) in enumerate(zip(rows_of, learned, strict=True)):
        progress("replaying", len(rows_of) + done, 2 * len(rows_of))
        calibration = assemble(identity, recording, one, chosen)
        for policy in catalogue(recording.models, calibration, one.kinds).values():
            run = replay_all(policy, recording, rows, calibration.temperatures, recording.models[-1])
            runs.setdefault(policy.name, []).append(run)
    progress("replaying", 2 * len(rows_of), 2 * len(rows_of))
    whole = {name: joined_runs(parts, order) for name, parts in runs.items()}
    front = {name: whole.pop(name) for name in list(whole) if name.startswith((f"{CASCADE}:", f"{CHAIN}:"))}
    return CrossValidated(whole, front, points | chain_points, chosen, lift)


def best_single(recording: Recording) -> str:
    """Return the most accurate model; the cheapest wins a tie."""
    return recording.models[int(np.lexsort((recording.costs(), -recording.right.mean(axis=0)))[0])]


def _points(
    recording: Recording, learned: Sequence[LearnedParts], held: Sequence[Table], order: NDArray[np.int64]
) -> Points:
    """Return the results of each policy that has several operating points, in the recording's order of images."""
    points: Points = {}
    for kind in learned[0].kinds:
        tried = [try_out(kind, one, images) for one, images in zip(learned, held, strict=True)]
        if all(tried):
            points[kind.name] = [
                outcomes_of(
                    recording,
                    np.concatenate([part.correct for part in parts])[order],
                    np.concatenate([part.ran for part in parts])[order],
                )
                for parts in zip(*tried, strict=True)
            ]
    return points


def outcomes_of(
    recording: Recording, correct: NDArray[np.bool_], ran: NDArray[np.bool_], chooser_ms: float = 0.0
) -> Outcomes:
    """Return the outcomes with the time and energy of models and choice. correct: (n,); ran: (n, m)."""
    energy_mj = None
    if recording.knows_energy:
        energy_mj = ran @ recording.costs("energy") + recording.chooser_mj(chooser_ms)
    return Outcomes(correct, ran @ recording.costs("time") + chooser_ms, energy_mj, recording.groups, recording.sizes)


def _read(
    recording: Recording,
    learned: Sequence[LearnedParts],
    held: Sequence[Table],
    order: NDArray[np.int64],
    features_ms: TimeFeatures,
) -> tuple[Lift | None, Points]:
    """Return the gain of the best reading of neighbours, and the results of its operating points."""
    taught = [taught for one in learned if (taught := one.policies.get(CHAIN)) is not None]
    if len(taught) < len(learned):
        return None, {}
    tried = join_folds([try_readings(one, images) for one, images in zip(taught, held, strict=True)], order)
    per_ms = recording.chooser_mj(1.0) if recording.objective == "energy" else 1.0
    costs = features_costs(list(tried), features_ms, per_ms)
    lift = choose_reading(tried, recording.costs(), costs, recording.groups)
    if lift is None:
        return None, {}
    outcome: TriedReading = tried[lift.reading]
    chooser_ms = features_ms(lift.reading.features)
    columns = range(outcome.right.shape[1])
    return lift, {
        CHAIN: [outcomes_of(recording, outcome.right[:, one], outcome.ran[:, one], chooser_ms) for one in columns]
    }


def _choose(
    recording: Recording, kinds: Sequence[Kind], points: Points, goal: Goal, lift: Lift | None
) -> dict[str, Any]:
    """Return what is chosen for each policy on held-out images: operating points and the chain's reading."""
    eye = np.eye(len(recording.models), dtype=bool)
    singles = [
        outcomes_of(recording, recording.right[:, column], np.broadcast_to(eye[column], recording.right.shape))
        for column in range(len(recording.models))
    ]
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


def joined_runs(parts: Sequence[PolicyReplay], order: NDArray[np.int64]) -> PolicyReplay:
    """Return the replays of all folds as one, sorted by `order`."""
    names = ("answered", "is_top5", "models_ms", "ran", "in_doubt")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in names}
    choice_ms = float(np.median([part.choice_ms for part in parts]))
    scores = Scores.joined([part.scores for part in parts if part.scores is not None], order)
    return PolicyReplay(**arrays, choice_ms=choice_ms, features=parts[0].features, scores=scores)
