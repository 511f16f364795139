"""Whether a promised error rate is kept: many draws of calibration images, each judged on the images left over.

For each draw everything is done that `jetsel calibrate` does for the cascades and the single models, on the images
drawn: temperatures, rungs, thresholds and operating points in ten folds, the choice of the default among all of them,
early refusal on two of the folds, and the promises on the other eight. What is then fitted on all images drawn answers
the images that were not drawn. Rungs are chosen among the models that the shipped cascade has: with all models, a draw
takes ten times as long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.papers.install import today
from jetsel.artefact.coding import read
from jetsel.artefact.promise import Promises
from jetsel.calibrate.calibrating import FOLDS
from jetsel.calibrate.fit.assemble import Identity, Learned, assemble, fit_temperatures, learn, try_out
from jetsel.calibrate.fit.cross_validation import best_single, joined_outcomes, joined_runs
from jetsel.calibrate.fit.goal import Goal, Outcomes
from jetsel.calibrate.judge.learn_then_test import LEVELS, naive_threshold
from jetsel.calibrate.judge.promises import Split, is_given, promises_of, saved_by, scores_of
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Run, replay_all
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies import Policy
from jetsel.policies.cascade import CascadeKind
from jetsel.policies.kind import ChainPlan
from jetsel.policies.registry import KINDS, catalogue

SEED = 2026
DEFAULT, BEST = "the default", "the best single model"
CASCADES = [kind for kind in KINDS if isinstance(kind, CascadeKind)]
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
    """One draw: by name the runs in folds, and the policies fitted on all; which of them is the default."""

    runs: dict[str, Run]
    policies: dict[str, Policy]
    default: str
    temperatures: dict[str, float]
    fold_of: NDArray[np.int64]


def fitted(drawn: Recording, identity: Identity, seed: int) -> Drawn:
    """Do what `jetsel calibrate` does for cascades and single models."""
    groups = np.arange(len(drawn.classes)) if drawn.groups is None else drawn.groups
    fold_of = assign_folds(groups, FOLDS, seed)
    _, rival = best_single(drawn)
    parts = [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(FOLDS)]
    learned = [_learned(drawn.take(train)) for train, _ in parts]
    order = np.argsort(np.concatenate([held for _, held in parts]))
    points = {}
    for kind in CASCADES:
        tried = [try_out(kind, one, drawn.take(held)) for one, (_, held) in zip(learned, parts, strict=True)]
        points[kind.name] = [joined_outcomes(point, order) for point in zip(*tried, strict=True)]

    def policies(taught: Learned, rows: NDArray[np.bool_]) -> dict[str, Policy]:
        """Return what was learned at the operating points that these images (n,) choose."""
        of_rows = {name: [point.of(rows) for point in found] for name, found in points.items()}
        places = {name: Goal().best(found, rival.of(rows)) for name, found in of_rows.items()}
        calibration = assemble(identity, taught, places)
        return catalogue(drawn.models, calibration)

    runs: dict[str, list[Run]] = {}
    for (_, held), one in zip(parts, learned, strict=True):
        rest = np.ones(len(fold_of), bool)
        rest[held] = False
        for name, policy in policies(one, rest).items():
            run = replay_all(policy, drawn, held, one.temperatures, None)
            runs.setdefault(name, []).append(run)
    joined = {name: joined_runs(found, order) for name, found in runs.items()}
    outcomes = {name: Outcomes(run.answered == drawn.classes, run.models_ms, None) for name, run in joined.items()}
    default = today(outcomes, None)
    assert default is not None
    last = _learned(drawn)
    return Drawn(joined, policies(last, np.ones(len(fold_of), bool)), default, dict(last.temperatures), fold_of)


def _learned(train: Recording) -> Learned:
    return learn(train, PLAN, fit_temperatures(train), CASCADES)


def judged(recording: Recording, kind: str, identity: Identity, images: int, seed: int) -> dict[str, list[Judged]]:
    """Draw this many images, calibrate on them, and judge on the rest.

    Return by level what the default gives, which pays for its choice, and this cascade and the best single model.
    """
    rows = np.random.default_rng((SEED, seed)).permutation(len(recording.classes))
    drawn, rest = recording.take(np.sort(rows[:images])), recording.take(np.sort(rows[images:]))
    found = fitted(drawn, identity, seed)
    split = Split.of(found.fold_of, drawn.groups)
    shown = {DEFAULT: found.default, kind: kind, BEST: f"single:{best_single(drawn)[0]}"}
    levels = {}
    for title, name in shown.items():
        before = found.runs[name]
        among = len(found.runs) if title == DEFAULT else 1
        promises = promises_of(before, before.answered != drawn.classes, split, chosen_among=among)
        run = replay_all(found.policies[name], rest, range(len(rest.classes)), found.temperatures, None)
        levels[title] = _levels(promises, before, drawn.classes, run, rest.classes)
    return levels


def _levels(
    promises: Promises, before: Run, known: NDArray[np.int64], run: Run, classes: NDArray[np.int64]
) -> list[Judged]:
    """Return what each level gives. before: the run in folds on the images drawn, of which `known` are the classes."""
    wrong = run.answered != classes
    scores, new = scores_of(before, ()), scores_of(run, ())
    kept = {one.wrong_at_most: one for one in promises.kept}
    found = []
    for level in LEVELS:
        promise = kept.get(level)
        given = None if promise is None else is_given(run, promise)
        limit = naive_threshold(scores, before.answered != known, level)
        by_naive = new >= (np.inf if limit is None else limit)
        best = naive_threshold(new, wrong, level)
        found.append(
            Judged(
                level,
                None if given is None else float(given.mean()),
                None if given is None else _share(wrong[given]),
                None if promise is None else saved_by(run, promise.early),
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
    for title in (DEFAULT, kind, BEST):
        print(f"**{title}**\n\n{HEADER}")
        for number, level in enumerate(LEVELS):
            print(_row(level, [one[title][number] for one in found]))
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
