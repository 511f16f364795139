"""Whether a promised error rate is kept: many draws of calibration images, each judged on the images left over.

For each draw everything is done that `jetsel calibrate` does for the default cascade and for the best single model, on
the images drawn: temperatures, rungs, thresholds and the operating point in ten folds, the score and early refusal on
two of them, and the promise on the other eight. The cascade that is then fitted on all images drawn answers the images
that were not drawn. Rungs are chosen among the models that the shipped cascade has: with all models, a draw takes ten
times as long.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel.base.files import write
from jetsel.calibrate.calibrating import FOLDS
from jetsel.calibrate.condensed import read_condensed
from jetsel.calibrate.fit.assemble import Identity, Learned, assemble, fit_temperatures, learn, try_out
from jetsel.calibrate.fit.cross_validation import best_single, joined_outcomes, joined_runs
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.judge.promises import doubts_of, is_given, saved_by
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Run, replay_all
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies import Policy
from jetsel.policies.calibration import ANSWERS
from jetsel.policies.coding import read
from jetsel.policies.kind import ChainPlan
from jetsel.policies.promise import Promises
from jetsel.policies.registry import KIND, catalogue
from jetsel.premodel.doubt import LEVELS, naive

CRITERION = "top1"
SEED = 2026
PLAN = ChainPlan(("n_keypoints",), 5)  # of the chain, which is not judged here


@dataclass(frozen=True)
class Judged:
    """One level of one draw, on the images that were not drawn. None: no promise could be made.

    answered, wrong: shares. naive_answered, naive_wrong: with the threshold that just kept the level on the images
    drawn. hindsight: the share that the best threshold answers, picked on the judged images themselves. oracle: the
    share that could be answered if all wrong answers were known.
    """

    level: float
    answered: float | None
    wrong: float | None
    saved: float | None
    naive_answered: float
    naive_wrong: float
    hindsight: float
    oracle: float


@dataclass(frozen=True, eq=False)
class Drawn:
    """The cascade and the best single model of one draw: by name, their runs in folds, and the final policies."""

    runs: dict[str, Run]
    policies: dict[str, Policy]
    temperatures: dict[str, float]
    fold_of: NDArray[np.int64]


def fitted(drawn: Recording, kind: str, identity: Identity, seed: int) -> Drawn:
    """Do what `jetsel calibrate` does for one kind of policy and the best single model."""
    groups = np.arange(len(drawn.classes)) if drawn.groups is None else drawn.groups
    fold_of = assign_folds(groups, FOLDS, seed)
    single, rival = best_single(drawn, CRITERION)
    parts = [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(FOLDS)]
    learned = [_learned(drawn.take(train), kind) for train, _ in parts]
    order = np.argsort(np.concatenate([held for _, held in parts]))
    tried = [try_out(KIND[kind], one, drawn.take(held)) for one, (_, held) in zip(learned, parts, strict=True)]
    points = [joined_outcomes(point, order) for point in zip(*tried, strict=True)]
    names, runs = (kind, f"single:{single}"), {}
    for name in names:
        found = []
        for (train, held), one in zip(parts, learned, strict=True):
            rows = np.zeros(len(fold_of), bool)
            rows[train] = True
            policy = _policies(one, kind, identity, Goal().best([p.of(rows) for p in points], rival.of(rows)))[name]
            found.append(replay_all(policy, drawn, held, CRITERION, one.temperatures, None))
        runs[name] = joined_runs(found, order)
    last = _learned(drawn, kind)
    policies = _policies(last, kind, identity, Goal().best(points, rival))
    return Drawn(runs, {name: policies[name] for name in names}, dict(last.temperatures), fold_of)


def _learned(train: Recording, kind: str) -> Learned:
    return learn(train, CRITERION, PLAN, fit_temperatures(train), [KIND[kind]])


def _policies(learned: Learned, kind: str, identity: Identity, place: int) -> dict[str, Policy]:
    calibration = assemble(identity, {CRITERION: learned}, {CRITERION: {kind: place}})
    return catalogue(learned.train.models, calibration)[CRITERION]


def judged(recording: Recording, kind: str, identity: Identity, images: int, seed: int) -> dict[str, list[Judged]]:
    """Draw this many images, calibrate on them, and judge on the rest; return what each policy gives at each level."""
    rows = np.random.default_rng((SEED, seed)).permutation(len(recording.classes))
    drawn, rest = recording.take(np.sort(rows[:images])), recording.take(np.sort(rows[images:]))
    found = fitted(drawn, kind, identity, seed)
    doubts = doubts_of(drawn, found.runs, found.fold_of, CRITERION)
    levels = {}
    for name, policy in found.policies.items():
        run = replay_all(policy, rest, range(len(rest.classes)), CRITERION, found.temperatures, None)
        levels[name] = _levels(doubts.promises[name], found.runs[name], drawn.classes, run, rest.classes)
    return levels


def _levels(
    promises: Promises, before: Run, known: NDArray[np.int64], run: Run, classes: NDArray[np.int64]
) -> list[Judged]:
    """Return what each level gives. before: the run in folds on the images drawn, of which `known` are the classes."""
    score, wrong = promises.score, run.answered != classes
    assert before.sights is not None
    assert run.sights is not None
    scores, new = score.of(before.sights.final), score.of(run.sights.final)
    kept = {one.wrong_at_most: one for one in promises.kept}
    found = []
    for level in LEVELS:
        promise = kept.get(level)
        given = None if promise is None else is_given(run, score, promise)
        limit = naive(scores, before.answered != known, level)
        by_naive = new >= (np.inf if limit is None else limit)
        best = naive(new, wrong, level)
        found.append(
            Judged(
                level,
                None if given is None else float(given.mean()),
                None if given is None else _share(wrong[given]),
                None if promise is None else saved_by(run, score, promise.early),
                float(by_naive.mean()),
                _share(wrong[by_naive]),
                0.0 if best is None else float((new >= best).mean()),
                float(min(1.0, (~wrong).mean() / (1 - level))),
            )
        )
    return found


def _share(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else 0.0


def show(
    title: str, recording: Recording, kind: str, identity: Identity, images: int, splits: int, most_s: float
) -> None:
    """Judge many draws and print them as Markdown; stop early after so many seconds, and say so."""
    began, found = time.monotonic(), []
    for seed in range(splits):
        found.append(judged(recording, kind, identity, images, seed))
        print(f"\r{seed + 1}/{splits} ", end="", flush=True)
        if time.monotonic() - began > most_s:
            break
    n = len(recording.classes)
    noise = (1 + images / (n - images)) ** 0.5
    print(f"\r{title}: {len(found)} draws of {images} of {n} images, judged on the other {n - images}.")
    print(f"The judged images are few, too: their noise widens that of a draw {noise:.2f} times.\n")
    for place, name in enumerate((kind, "the best single model")):
        print(f"**{name}**\n\n{HEADER}")
        for number, level in enumerate(LEVELS):
            ones = [list(one.values())[place][number] for one in found]
            print(_row(level, ones))
        print()


HEADER = """| wrong at most | promised in | not broken in | kept of those promised | answered | \
wrong | time saved | naive kept in | naive answered | \
hindsight | oracle |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


def _row(level: float, ones: Sequence[Judged]) -> str:
    able = [one for one in ones if one.answered is not None and one.wrong is not None]

    def mean(values: Sequence[float]) -> str:
        return f"{100 * float(np.mean(values)):.1f} %" if len(values) else "-"

    cells = [
        f"{100 * level:g} %",
        mean([one.answered is not None for one in ones]),
        mean([one.wrong is None or one.wrong <= level for one in ones]),
        mean([one.wrong <= level for one in able if one.wrong is not None]),
        mean([one.answered for one in able if one.answered is not None]),
        mean([one.wrong for one in able if one.wrong is not None]),
        mean([one.saved for one in able if one.saved is not None]),
        mean([one.naive_wrong <= level for one in ones]),
        mean([one.naive_answered for one in ones]),
        mean([one.hindsight for one in ones]),
        mean([one.oracle for one in ones]),
    ]
    return f"| {' | '.join(cells)} |"


def shrunk(recording: Recording) -> Recording:
    """Return the recording as it ships with a calibration, each image's likeliest classes alone: ten times as fast.

    Temperatures are fitted on it again.
    """
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        write(Path(name) / ANSWERS, recording.condensed(dict.fromkeys(recording.models, 1.0)))
        return replace(Recording.of_answers(read_condensed(Path(name), recording.costs_ms)), is_scaled=False)


def of_shipped(recording: Recording, shipped: Path, kind: str) -> Recording:
    """Return the recording of the models that a shipped calibration's cascades of this kind have."""
    rungs = read(shipped).parts[kind].facts
    return recording.of_models(sorted({rung.model for of in rungs.values() for rung in of}))


def pooled(first: Recording, second: Recording) -> Recording:
    """Return the images of two recordings of the same models as one, with the times of the first."""
    if first.models != second.models:
        second = replace(
            second,
            models=first.models,
            logits=second.logits[[second.models.index(model) for model in first.models]],
        )
    groups = [np.arange(len(one.classes)) if one.groups is None else one.groups for one in (first, second)]
    return replace(
        first,
        logits=np.concatenate([first.logits, second.logits], axis=1),
        classes=np.concatenate([first.classes, second.classes]),
        features=np.concatenate([first.features, second.features]),
        embeddings=None,
        groups=np.concatenate([groups[0], groups[1] + groups[0].max() + 1]),
        paths=(*first.paths, *second.paths),
    )
