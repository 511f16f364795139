"""Whether a promised error rate is kept: many draws of calibration images, each judged on the images left over.

For each draw everything is done that `jetsel calibrate` does for the cascades and the single models, on the images
drawn: temperatures, the cascades of all budgets in ten folds, the choice of the default among all of them and the
single models, early refusal on two of the folds, and the promises on the other eight. What is then fitted on all images
drawn answers the images that were not drawn.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import BoundIdentities, PolicyPart
from jetsel.artefact.promise import Promises
from jetsel.calibrate.calibrating import FOLDS
from jetsel.calibrate.fit.cross_validation import cross_validate, draft_calibration
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.judge.decision import InstallRequest, decide
from jetsel.calibrate.judge.learn_then_test import LEVELS, naive_threshold
from jetsel.calibrate.judge.promises import Split, answered_under, promises_of, saved_by, scores_of
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.record.recording import LoadedRecording, Recording, Times
from jetsel.calibrate.record.replay import PolicyReplay, replay_all
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies import Policy
from jetsel.policies.cascade import NAME as CASCADE
from jetsel.policies.cascade import CascadeKind, ChosenPoints, LearnedCascades
from jetsel.policies.registry import catalogue

SEED = 2026
DEFAULT, BEST = "the default", "the best single model"


class CascadeAlone(CascadeKind):
    """The cascade without the points of its front, which nobody asks here, and whose replay takes long."""

    def to_part(self, learned: LearnedCascades, chosen: ChosenPoints) -> PolicyPart:
        """Store the cascade of the chosen budget."""
        return super().to_part(learned, replace(chosen, front=()))


KINDS = (CascadeAlone(),)


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

    runs: dict[str, PolicyReplay]
    policies: dict[str, Policy]
    default: str
    temperatures: dict[str, float]
    fold_of: NDArray[np.int64]


def fitted(drawn: Recording, identity: BoundIdentities, seed: int) -> Drawn:
    """Do what `jetsel calibrate` does for cascades and single models."""
    groups = np.arange(len(drawn.classes)) if drawn.groups is None else drawn.groups
    fold_of = assign_folds(groups, FOLDS, seed)
    unfitted = draft_calibration(identity, drawn, fit_temperatures(drawn))
    tried = cross_validate(drawn, unfitted, fold_of, Goal(), _nothing, lambda *_: None, KINDS)
    loaded = LoadedRecording(drawn, Times(0.0, {}, None), identity)
    default = decide(InstallRequest(), loaded, tried.runs, tried.points, Judge(drawn, _nothing)).winner
    policies = catalogue(drawn.models, tried.calibration)
    return Drawn(tried.runs, policies, default, unfitted.temperatures, fold_of)


def _nothing(_names: tuple[str, ...]) -> float:
    """Return what features take that nobody reads."""
    return 0.0


def judged(recording: Recording, identity: BoundIdentities, images: int, seed: int) -> dict[str, list[Judged]]:
    """Draw this many images, calibrate on them, and judge on the rest.

    Return by level what the default and the cascade give, which pay for their choice, and the best single model.
    """
    rows = np.random.default_rng((SEED, seed)).permutation(len(recording.classes))
    drawn, rest = recording.take(np.sort(rows[:images])), recording.take(np.sort(rows[images:]))
    found = fitted(drawn, identity, seed)
    split = Split.of(found.fold_of, drawn.groups)
    shown = {DEFAULT: found.default, CASCADE: CASCADE, BEST: f"single:{drawn.best_single}"}
    levels = {}
    for title, name in shown.items():
        before = found.runs[name]
        among = 1 if title == BEST else len(found.runs)
        promises = promises_of(before, before.answered != drawn.classes, split, chosen_among=among)
        run = replay_all(found.policies[name], rest, range(len(rest.classes)), found.temperatures, None)
        levels[title] = _levels(promises, before, drawn.classes, run, rest.classes)
    return levels


def _levels(
    promises: Promises, before: PolicyReplay, known: NDArray[np.int64], run: PolicyReplay, classes: NDArray[np.int64]
) -> list[Judged]:
    """Return what each level gives. before: the run in folds on the images drawn, of which `known` are the classes."""
    wrong = run.answered != classes
    scores, new = scores_of(before, ()), scores_of(run, ())
    kept = {one.wrong_at_most: one for one in promises.kept}
    found = []
    for level in LEVELS:
        promise = kept.get(level)
        given = None if promise is None else answered_under(run, promise)
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


def show(title: str, recording: Recording, identity: BoundIdentities, images: int, splits: int, most_s: float) -> None:
    """Judge many draws and print them as Markdown; stop early after so many seconds, and say so."""
    began, found = time.monotonic(), []
    for seed in range(splits):
        found.append(judged(recording, identity, images, seed))
        print(f"\r{seed + 1}/{splits} ", end="", flush=True)
        if time.monotonic() - began > most_s:
            break
    n = len(recording.classes)
    noise = (1 + images / (n - images)) ** 0.5
    print(f"\r{title}: {len(found)} draws of {images} of {n} images, judged on the other {n - images}.")
    print(f"The judged images are few, too: their noise widens that of a draw {noise:.2f} times.\n")
    for title in (DEFAULT, CASCADE, BEST):
        print(f"**{title}**\n\n{HEADER}")
        for number, level in enumerate(LEVELS):
            print(_row(level, [one[title][number] for one in found]))
        print()


HEADER = """| wrong at most | promised in | exceeded in | exceeded of those promised | answered | \
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
        mean([one.wrong is not None and one.wrong > level for one in ones]),
        mean([one.wrong > level for one in able if one.wrong is not None]),
        mean([one.answered for one in able if one.answered is not None]),
        mean([one.wrong for one in able if one.wrong is not None]),
        mean([one.saved for one in able if one.saved is not None]),
        mean([one.naive_wrong <= level for one in ones]),
        mean([one.naive_answered for one in ones]),
        mean([one.hindsight for one in ones]),
        mean([one.oracle for one in ones]),
    ]
    return f"| {' | '.join(cells)} |"


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
