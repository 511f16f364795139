"""Every policy, learned in turn from all folds but one and replayed on that one; how sound the chain is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel import premodel
from jetsel.calibrate.fit.assemble import Chosen, Identity, Learned, assemble, fit_temperatures, learn, try_out
from jetsel.calibrate.fit.features import chosen_right
from jetsel.calibrate.fit.folds import Neighbourhood
from jetsel.calibrate.fit.goal import Goal, Outcomes
from jetsel.calibrate.record.recording import Objective, Recording
from jetsel.calibrate.record.replay import Run, Scores, replay_all
from jetsel.policies.front import NAME as FRONT
from jetsel.policies.front import POINT
from jetsel.policies.kind import ChainPlan, Kind
from jetsel.policies.registry import USUAL, catalogue
from jetsel.premodel import Soundness

Points = dict[str, list[Outcomes]]  # policy -> its operating points, each on the held-out photographs
Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """What cross-validation gave.

    runs: policy -> its outcome on every photograph, each under a calibration that had not seen it. front: the same of
    the front's points. points: the same for every operating point that was tried. chosen: what all photographs decide.
    """

    runs: dict[str, Run]
    front: dict[str, Run]
    points: Points
    chosen: Chosen


def cross_validate(
    recording: Recording,
    fold_of: NDArray[np.int64],
    near: Neighbourhood,
    plan: ChainPlan,
    goal: Goal,
    identity: Identity,
    progress: Progress,
    kinds: Sequence[Kind] = USUAL,
) -> CrossValidated:
    """Return what each policy of these kinds gives on photographs that nothing of it was fitted on."""
    folds = np.unique(fold_of)
    steps = 2 * len(folds)
    learned: list[Learned] = []
    for fold in folds:
        progress("learning", len(learned), steps)
        train = recording.take(np.flatnonzero(fold_of != fold))
        learned.append(learn(train, plan, fit_temperatures(train), kinds))
    progress("replaying", len(folds), steps)
    found = _replayed(recording, fold_of, near, learned, goal, identity)
    progress("replaying", steps, steps)
    return found


def best_single(recording: Recording) -> tuple[str, Outcomes]:
    """The most accurate model, of equals the cheapest, and what it gives."""
    right = recording.right
    column = int(np.lexsort((recording.costs(), -right.mean(axis=0)))[0])
    model = recording.models[column]
    energy_mj = np.full(len(right), recording.costs("energy")[column]) if recording.knows_energy else None
    return model, Outcomes(right[:, column], np.full(len(right), recording.costs_ms[model]), energy_mj)


def _replayed(
    recording: Recording,
    fold_of: NDArray[np.int64],
    near: Neighbourhood,
    learned: Sequence[Learned],
    goal: Goal,
    identity: Identity,
) -> CrossValidated:
    rows_of = [np.flatnonzero(fold_of == fold) for fold in np.unique(fold_of)]
    order = np.argsort(np.concatenate(rows_of))  # where each photograph stands in the folds put one after the other
    points = _points(learned, [recording.take(rows) for rows in rows_of], order)
    _, rival = best_single(recording)
    chain_right = _chain_right(recording, near, learned[0].plan.theta_points)
    last_right = recording.right[:, -1]
    on_front = front_places(points["cascade"], recording.objective)

    def chosen(rows: NDArray[np.bool_]) -> dict[str, Any]:
        """What these photographs decide."""
        soundness = fit_soundness(near.distance[rows], chain_right[rows], last_right[rows])
        places = {
            policy: goal.best([point.of(rows) for point in tried], rival.of(rows)) for policy, tried in points.items()
        }
        return {"chain": soundness, FRONT: on_front, **places}

    runs: dict[str, list[Run]] = {}
    for rows, one in zip(rows_of, learned, strict=True):
        held_out = np.zeros(len(fold_of), bool)
        held_out[rows] = True
        calibration = assemble(identity, one, chosen(~held_out))
        for policy in catalogue(recording.models, calibration, one.kinds).values():
            last = recording.models[-1]
            run = replay_all(policy, recording, rows, calibration.temperatures, last)
            runs.setdefault(policy.name, []).append(run)
    everywhere = chosen(np.ones(len(fold_of), bool))
    joined = {name: joined_runs(parts, order) for name, parts in runs.items()}
    front = {name: joined.pop(name) for name in list(joined) if name.startswith(POINT)}
    return CrossValidated(joined, front, points, everywhere)


APART = 0.94  # of the cost of the point before: closer ones would only make the front longer


def front_places(points: Sequence[Outcomes], objective: Objective) -> list[int]:
    """Return the places of the points that none beats on held-out images, the most expensive one first."""
    cost = [float(point.cost(objective).mean()) for point in points]
    accuracy = [float(point.correct.mean()) for point in points]
    found: list[int] = []
    for place in sorted(range(len(points)), key=lambda place: (cost[place], -accuracy[place])):
        if not found or (accuracy[place] > accuracy[found[-1]] and APART * cost[place] >= cost[found[-1]]):
            found.append(place)
    return found[::-1]


def _chain_right(recording: Recording, near: Neighbourhood, theta_points: float) -> NDArray[np.bool_]:
    """Whether what the chain chooses by these neighbours is right, (n,); in doubt the last model of all answers."""
    right, costs = recording.right, recording.costs()
    links, _ = premodel.select_models(right, costs, recording.models, theta_points)
    columns = [recording.models.index(model) for model in links]
    votes = premodel.optimum_votes(right[:, columns], costs[columns])
    return chosen_right(near.near, votes, right[:, [*columns, -1]], len(columns))


def _points(learned: Sequence[Learned], held: Sequence[Recording], order: NDArray[np.int64]) -> Points:
    """The operating points of each policy that has several, at the places of their photographs."""
    points: Points = {}
    for kind in learned[0].kinds:
        tried = [try_out(kind, one, photographs) for one, photographs in zip(learned, held, strict=True)]
        if all(tried):
            points[kind.name] = [joined_outcomes(parts, order) for parts in zip(*tried, strict=True)]
    return points


def joined_outcomes(parts: Sequence[Outcomes], order: NDArray[np.int64]) -> Outcomes:
    """One operating point's outcomes of all folds."""
    energies = [part.energy_mj for part in parts if part.energy_mj is not None]
    return Outcomes(
        np.concatenate([part.correct for part in parts])[order],
        np.concatenate([part.time_ms for part in parts])[order],
        np.concatenate(energies)[order] if energies else None,
    )


def joined_runs(parts: Sequence[Run], order: NDArray[np.int64]) -> Run:
    """One run of the folds' runs, at the places of their photographs."""
    names = ("answered", "is_top5", "models_ms", "ran", "in_doubt")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in names}
    choice_ms = float(np.median([part.choice_ms for part in parts]))
    scores = Scores.joined([part.scores for part in parts if part.scores is not None], order)
    return Run(**arrays, choice_ms=choice_ms, features=parts[0].features, scores=scores)


STEPS = 20  # at most: pools of photographs from near to far


def fit_soundness(
    distances: NDArray[np.float64], right: NDArray[np.bool_], fallback_right: NDArray[np.bool_]
) -> Soundness:
    """Return the confidence by distance, and the distance beyond which the fallback is right more often.

    distances: (n,) to the neighbours, of photographs that were held out; right: (n,), whether the choice was;
    fallback_right: (n,), whether the fallback is. The confidence is the non-increasing function of the distance that is
    closest to the observations (isotonic regression). The limit is the distance from which on to the farthest the
    choices are beaten the most, in sum; None if no such end loses two standard errors or more, and if the nearer
    ones lose as much, as far as two standard errors of the difference can tell: then the distance tells nothing. Cut is
    between twentieths, and photographs at one distance are never parted.
    """
    order = np.argsort(distances, kind="stable")
    pools = _pools(distances[order], order)
    shares = non_increasing(
        np.array([right[pool].mean() for pool in pools]), np.array([len(pool) for pool in pools], np.float64)
    )
    steps: list[tuple[float, float]] = []
    for pool, share in zip(pools, shares, strict=True):
        end = (float(distances[pool].max()), float(share))
        if steps and steps[-1][1] == end[1]:
            steps.pop()
        steps.append(end)
    gain = fallback_right[order].astype(np.float64) - right[order]
    ends = np.cumsum([len(pool) for pool in pools])
    return Soundness(_limit(distances[order], gain, ends[:-1]), tuple(steps))


def _pools(distances: NDArray[np.float64], order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """About equal parts of `order`, whose sorted distances these are, cut only where the distance grows."""
    wanted = np.arange(STEPS) * len(order) // STEPS
    return np.split(order, np.unique(np.searchsorted(distances, distances[wanted]))[1:])


def non_increasing(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the non-increasing sequence of least weighted squared error, by pooling adjacent violators: (n,)."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] < pools[-1][0]:
            (mean, heavy, many), (other, light, few) = pools[-2:]
            pools[-2:] = [((mean * heavy + other * light) / (heavy + light), heavy + light, many + few)]
    return np.concatenate([np.full(length, mean) for mean, _, length in pools])


def _limit(distances: NDArray[np.float64], gain: NDArray[np.float64], cuts: NDArray[np.int64]) -> float | None:
    """The distance beyond which leaving the choice to the fallback gains the most, if it gains less before.

    distances: (n,), from near to far. gain: (n,), 1 if the fallback alone is right, -1 if the choice alone is.
    cuts: before which photographs the limit may lie, the nearest left out.
    """
    starts = np.array([0, *cuts])
    beyond = gain[::-1].cumsum()[::-1][starts]  # what is gained if this one and all that are farther go to the fallback
    spread = np.sqrt((gain * gain)[::-1].cumsum()[::-1][starts])
    sure = np.where(beyond >= 2 * spread, beyond, 0.0)
    start = int(starts[sure.argmax()])
    if sure.max() <= 0 or start == 0:
        return None
    near, far = gain[:start], gain[start:]
    error = np.sqrt((near * near).mean() / len(near) + (far * far).mean() / len(far))
    return float(distances[start - 1]) if far.mean() - near.mean() >= 2 * error else None
