"""What each policy can promise of its errors, by images that neither it nor the score was fitted on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Run, replay_all
from jetsel.policies.calibration import Calibration
from jetsel.policies.promise import Missing, Promise, Promises, Score
from jetsel.policies.registry import catalogue
from jetsel.premodel import Neighbours
from jetsel.premodel.doubt import (
    LEVELS,
    early_thresholds,
    images_needed,
    logistic,
    naive,
    promised,
    refused_early,
)
from jetsel.wire import Criterion

CHOOSING_FOLDS = 2
"""Of ten: on these the score is chosen and early refusal is aimed; the other eight test the promise. So of five unknown
images one helps to choose, and the mix of known and unknown ones is the same in both parts."""
SEED = 2021
AIM = 1.5  # times the level
WORTH = 0.02  # of the images that another score than the probability must answer more, to be chosen
SINGLE_SCORES = {
    "probability": Score(probability=1.0),
    "margin": Score(margin=1.0),
    "distance": Score(nearness=1.0),
}

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Unknown:
    """What the policies do with images of nothing that the family knows. runs: by policy."""

    runs: Mapping[str, Run]

    @staticmethod
    def fitted_on(n: int) -> NDArray[np.bool_]:
        """Return which of n images the score may be fitted on, (n,); the others test the promise."""
        fitted: NDArray[np.bool_] = np.random.default_rng(SEED).permutation(n) % 5 == 0
        return fitted


@dataclass(frozen=True, eq=False)
class Evidence:
    """The images of one criterion. fold_of: (n,). is_first: (n,), of images that are nearly the same, one alone."""

    runs: Mapping[str, Run]
    classes: NDArray[np.int64]
    fold_of: NDArray[np.int64]
    is_first: NDArray[np.bool_]
    criterion: Criterion
    unknown: Unknown | None = None

    @property
    def choosing(self) -> NDArray[np.bool_]:
        """The images that choose the score, (n,)."""
        return self.fold_of < CHOOSING_FOLDS

    @property
    def testing(self) -> NDArray[np.bool_]:
        """The images that test the promise, (n,)."""
        testing: NDArray[np.bool_] = ~self.choosing & self.is_first
        return testing

    def wrong(self, run: Run) -> NDArray[np.bool_]:
        """Return which answers are wrong, (n,)."""
        wrong: NDArray[np.bool_] = ~run.is_top5 if self.criterion == "top5" else run.answered != self.classes
        return wrong


@dataclass(frozen=True, eq=False)
class ScoreChoice:
    """Which score was chosen, by name, and the mean share of images that each one answers at the levels."""

    name: str
    score: Score
    answered: dict[str, float]


def aligned(unknown: Recording, recording: Recording) -> Recording:
    """Return a recording with the models of another in its order, and with its times; of near-duplicates the first.

    Raises CalibrationError if it lacks one of the models.
    """
    missing = [model for model in recording.models if model not in unknown.models]
    if missing:
        raise CalibrationError(f"--unknown: {' and '.join(missing)} did not run on these images: run this again")
    if unknown.groups is not None:
        unknown = unknown.take(np.sort(np.unique(unknown.groups, return_index=True)[1]))
    rows = [unknown.models.index(model) for model in recording.models]
    has_same = unknown.models[0] == recording.models[0]
    return replace(
        unknown,
        models=recording.models,
        logits=unknown.logits[rows],
        costs_ms=recording.costs_ms,
        energies_mj=recording.energies_mj,
        groups=None,
        embeddings=unknown.embeddings if has_same else None,
    )


def distances_to(points: NDArray[np.floating] | None, recording: Recording) -> Floats | None:
    """Return the distance of each recorded embedding to the nearest of these (m, width), (n,); None if one lacks."""
    if points is None or recording.embeddings is None:
        return None
    near = Neighbours(points.astype(np.float32))
    return near.nearest_many(recording.embeddings.astype(np.float32), 1)[1][:, 0]


def look_at_unknown(recording: Recording, unknown: Recording, draft: Calibration, criterion: Criterion) -> Unknown:
    """Replay every policy on images of nothing that the family knows, with the calibration on all images.

    recording: that the calibration was fitted on.
    """
    unknown = aligned(unknown, recording)
    distances = distances_to(recording.embeddings, unknown)
    rows, last = range(len(unknown.classes)), recording.models[-1]
    policies = catalogue(recording.models, draft)[criterion]
    runs = {
        name: replay_all(policy, unknown, rows, criterion, draft.temperatures, last, distances)
        for name, policy in policies.items()
    }
    return Unknown(runs)


def choose_score(seen: Evidence, policy: str) -> ScoreChoice:
    """Return the score that answers the most images of this policy, at the same share of wrong answers.

    The choosing images alone are looked at, and a fifth of the unknown ones, to which every answer is wrong. If there
    are unknown images, all scores together are weighed by logistic regression, too.
    """
    run = seen.runs[policy]
    assert run.sights is not None
    rows = seen.choosing & ~np.isnan(run.sights.final[:, 0])
    known, wrong = run.sights.final[rows], seen.wrong(run)[rows]
    strange = np.zeros((0, 3))
    if seen.unknown is not None:
        sights_of = seen.unknown.runs[policy].sights
        assert sights_of is not None
        every = sights_of.final
        strange = every[Unknown.fitted_on(len(every)) & ~np.isnan(every[:, 0])]
    candidates = {name: score for name, score in SINGLE_SCORES.items() if not np.isnan(score.of(known)).any()}
    sights, is_wrong = np.concatenate([known, strange]), np.concatenate([wrong, np.ones(len(strange), bool)])
    if len(strange) and 0 < is_wrong.sum() < len(is_wrong):
        candidates["all together"] = _weighed(sights, ~is_wrong)
    answered = {name: _mean_answered(score.of(sights), is_wrong) for name, score in candidates.items()}
    best = max(answered, key=answered.__getitem__, default="probability")
    if answered and answered[best] < answered["probability"] + WORTH:
        best = "probability"
    return ScoreChoice(best, candidates.get(best, SINGLE_SCORES["probability"]), answered)


def _weighed(sights: Floats, right: NDArray[np.bool_]) -> Score:
    """Return the weights of least loss on what is known of all these answers."""
    used = [column for column in range(3) if not np.isnan(sights[:, column]).any()]
    weights = logistic(sights[:, used], right)
    full = np.zeros(3)
    full[used] = weights[:-1]
    probability, gap, nearness = full.tolist()
    return Score(probability, gap, nearness, float(weights[-1]))


def _mean_answered(scores: Floats, wrong: NDArray[np.bool_]) -> float:
    """Return the mean share that is answered at the levels, if their thresholds were picked on these images."""
    limits = [naive(scores, wrong, level) for level in LEVELS]
    return float(np.mean([0.0 if limit is None else (scores >= limit).mean() for limit in limits]))


def promises_of(seen: Evidence, policy: str, score: Score) -> Promises:
    """Return what one policy can promise by a score.

    Images near to each other count once. If there are unknown images, every answer to one of them is wrong, and the
    promise is kept among the known images alone as well as among all of them. A level that cannot be promised says how
    many images would be needed.
    """
    run = seen.runs[policy]
    strange = None if seen.unknown is None else seen.unknown.runs[policy]
    kept, missing = [], []
    for level in LEVELS:
        early = _aimed(seen, run, strange, score, level)
        tests = [(scores_of(run, score, early)[seen.testing], seen.wrong(run)[seen.testing])]
        if strange is not None:
            scores = scores_of(strange, score, early)[~Unknown.fitted_on(len(strange.answered))]
            tests.append(_with_unknown(*tests[0], scores))
        thresholds = [promised(scores, wrong, level) for scores, wrong in tests]
        found = [threshold for threshold in thresholds if threshold is not None]
        if len(found) < len(tests):
            missing.append(Missing(level, _needed(seen, tests, level)))
            continue
        scores, wrong = tests[0]
        given = scores >= max(found)
        promise = Promise(
            wrong_at_most=level,
            threshold=max(found),
            early=early,
            answered=float(given.mean()),
            wrong=float(wrong[given].mean()),
            saved=saved_by(run, score, early),
        )
        kept.append(structs.replace(promise, unknown_refused=_unknown_refused(seen, policy, score, promise)))
    return Promises(score, tuple(kept), tuple(missing), int(seen.is_first.sum()))


def _with_unknown(scores: Floats, wrong: NDArray[np.bool_], strange: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return scores and wrong answers of known and unknown images together."""
    return np.concatenate([scores, strange]), np.concatenate([wrong, np.ones(len(strange), bool)])


def _aimed(seen: Evidence, run: Run, strange: Run | None, score: Score, level: float) -> tuple[float | None, ...]:
    """Return the thresholds of early refusal, for about the threshold that the choosing images alone would get.

    They are few, so it is that of a milder level (AIM): an aim that is too strict would refuse what could be answered.
    """
    final = scores_of(run, score, ())
    known = final[seen.choosing], seen.wrong(run)[seen.choosing]
    if strange is not None:
        known = _with_unknown(*known, scores_of(strange, score, ())[Unknown.fitted_on(len(strange.answered))])
    aim, looks = naive(*known, AIM * level), _looks(run, score)
    while looks and np.isnan(looks[-1]).all():
        looks.pop()
    return () if aim is None or not looks else early_thresholds(looks, final, aim)


def _looks(run: Run, score: Score) -> list[Floats]:
    """Return the scores at each rung before the last, (n,) each."""
    assert run.sights is not None
    return [score.of(run.sights.looks[:, place]) for place in range(run.sights.looks.shape[1])]


def scores_of(run: Run, score: Score, early: Sequence[float | None]) -> Floats:
    """Return the scores of the answers, (n,); -inf for images that are refused in any case."""
    assert run.sights is not None
    final = np.nan_to_num(score.of(run.sights.final), nan=-np.inf)
    refused = run.in_doubt.copy()
    if early:
        refused |= refused_early(_looks(run, score), early)
    return np.where(refused, -np.inf, final)


def _needed(seen: Evidence, tests: Sequence[tuple[Floats, NDArray[np.bool_]]], level: float) -> int | None:
    """Return how many images a promise would need in all, None if no number is likely to do."""
    shares = [(images_needed(scores, wrong, level), len(scores)) for scores, wrong in tests]
    times = [needed / n for needed, n in shares if needed is not None]
    return math.ceil(max(times) * int(seen.is_first.sum())) if len(times) == len(tests) else None


def saved_by(run: Run, score: Score, early: Sequence[float | None]) -> float:
    """Return the share of the models' mean time that early refusal saves on these images."""
    assert run.sights is not None
    looks = _looks(run, score)
    spent_ms = run.models_ms.copy()
    for place in reversed(range(len(early))):
        limit = early[place]
        if limit is not None:
            stops = looks[place] < limit
            spent_ms[stops] = run.sights.looks_ms[stops, place]
    return float(1 - spent_ms.mean() / run.models_ms.mean())


def _unknown_refused(seen: Evidence, policy: str, score: Score, promise: Promise) -> float | None:
    """Return the share of the unknown images that is refused, of those that no score was fitted on."""
    if seen.unknown is None:
        return None
    run = seen.unknown.runs[policy]
    return float(1 - is_given(run, score, promise)[~Unknown.fitted_on(len(run.answered))].mean())


@dataclass(frozen=True, eq=False)
class Doubts:
    """What the policies promise under one criterion. choices, promises: by policy."""

    seen: Evidence
    choices: dict[str, ScoreChoice]
    promises: dict[str, Promises]


def doubts_of(
    recording: Recording,
    runs: Mapping[str, Run],
    fold_of: NDArray[np.int64],
    criterion: Criterion,
    unknown: Unknown | None = None,
) -> Doubts:
    """Return what each policy promises, by the score that answers the most of its images.

    runs: of each policy, on images that it was not fitted on. fold_of: (n,), the fold of each image.
    """
    groups = np.arange(len(fold_of)) if recording.groups is None else recording.groups
    is_first = np.zeros(len(groups), bool)
    is_first[np.unique(groups, return_index=True)[1]] = True
    seen = Evidence(runs, recording.classes, fold_of, is_first, criterion, unknown)
    choices = {name: choose_score(seen, name) for name in runs}
    return Doubts(seen, choices, {name: promises_of(seen, name, one.score) for name, one in choices.items()})


def is_given(run: Run, score: Score, promise: Promise) -> NDArray[np.bool_]:
    """Return which images (n,) get an answer under a promise."""
    given: NDArray[np.bool_] = scores_of(run, score, promise.early) >= promise.threshold
    return given
