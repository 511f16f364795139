"""Test on held-out images which error rates each policy can promise, that is, guarantee with high probability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.promise import MissingPromise, Promise, Promises
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.judge.learn_then_test import (
    DELTA,
    LEVELS,
    early_threshold,
    images_needed,
    naive_threshold,
    safe_threshold,
)
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay, Scores, replay_all
from jetsel.policies.registry import catalogue

TUNING_FOLDS = 2
"""Folds of ten that tune early refusal; the other eight test the promise. One of five unknown images tunes too, so the
mix of known and unknown images is the same in both parts."""
SEED = 2021
TUNING_LEVEL_FACTOR = 1.5  # early refusal is tuned for an error rate of this many times the promised one

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Split:
    """Which images tune early refusal and which test promises."""

    tuning: Bools  # (n,)
    testing: Bools  # (n,); of near-duplicates only one
    recorded: int  # number of images, near-duplicates counted once

    @classmethod
    def of(cls, fold_of: NDArray[np.int64], groups: NDArray[np.int64] | None) -> Split:
        """Return the split of ten folds. fold_of: (n,), the fold of each image; groups: (n,), see Recording."""
        is_first = np.ones(len(fold_of), bool)
        if groups is not None:
            is_first[:] = False
            is_first[np.unique(groups, return_index=True)[1]] = True
        tuning = fold_of < TUNING_FOLDS
        return cls(tuning, ~tuning & is_first, int(is_first.sum()))


def tuning_unknown(n: int) -> Bools:
    """Return which of n unknown images tune early refusal, (n,); the others test the promise."""
    tuning: Bools = np.random.default_rng(SEED).permutation(n) % 5 == 0
    return tuning


def align_unknown(unknown: Recording, recording: Recording) -> Recording:
    """Return the recording `unknown` with the models, their order and costs of `recording`, without near-duplicates.

    Raises CalibrationError if a model of `recording` did not run on the unknown images.
    """
    missing = [model for model in recording.models if model not in unknown.models]
    if missing:
        raise CalibrationError(f"--unknown: {' and '.join(missing)} did not run on these images: run this again")
    if unknown.groups is not None:
        unknown = unknown.take(np.sort(np.unique(unknown.groups, return_index=True)[1]))
    rows = [unknown.models.index(model) for model in recording.models]
    has_same_cheapest = unknown.models[0] == recording.models[0]
    return replace(
        unknown,
        models=recording.models,
        logits=unknown.logits[rows],
        costs_ms=recording.costs_ms,
        energies=recording.energies,
        groups=None,
        embeddings=unknown.embeddings if has_same_cheapest else None,
    )


def replay_unknown(recording: Recording, unknown: Recording, fitted: Calibration) -> dict[str, PolicyReplay]:
    """Return the replay of every policy of `fitted`, by name, on images that belong to no class of the family."""
    unknown = align_unknown(unknown, recording)
    rows, fallback = range(len(unknown.classes)), recording.models[-1]
    policies = catalogue(recording.models, fitted)
    return {name: replay_all(policy, unknown, rows, fitted.temperatures, fallback) for name, policy in policies.items()}


def promises_by_policy(
    runs: Mapping[str, PolicyReplay],
    classes: NDArray[np.int64],
    split: Split,
    unknown: Mapping[str, PolicyReplay],
    default: str,
    rivals: int,
) -> dict[str, Promises]:
    """Return policy -> the error rates that it can promise, see `promises_of`.

    runs: held-out replays. classes: (n,), the true ones. unknown: replays on images of no known class; empty if there
    are none. default: the policy that was chosen on the same images among `rivals` policies.
    """
    promises = {}
    for name, run in runs.items():
        is_fixed = ":" in name and name != default  # a single model or a numbered point, not chosen on these images
        chosen_among = 1 if is_fixed else rivals
        promises[name] = promises_of(
            run, run.answered != classes, split, unknown[name] if unknown else None, chosen_among
        )
    return promises


def promises_of(
    run: PolicyReplay, wrong: Bools, split: Split, unknown: PolicyReplay | None = None, chosen_among: int = 1
) -> Promises:
    """Return the error rates of LEVELS that a policy can promise; for the others, how many images that would need.

    run: on held-out images. wrong: (n,), which answers are wrong. unknown: on images of no known class, to which every
    answer is wrong; a promise must hold among the known images alone, and among known and unknown images together.

    chosen_among: number of policies from which this one was chosen on the same images. The luckiest of several seems
    better than it is, so DELTA is divided by their number (Bonferroni). Operating points of one policy share nearly all
    answers and do not count; `python -m calibration.imagenet.promises` counts how often a promise is broken.
    """
    delta = DELTA / chosen_among
    kept, missing = [], []
    for level in LEVELS:
        early = _early_refusal(run, wrong, split, unknown, level)
        tests = [(scores_of(run, early)[split.testing], wrong[split.testing])]
        unknown_scores = None
        if unknown is not None:
            unknown_scores = scores_of(unknown, early)[~tuning_unknown(len(unknown.answered))]
            tests.append(_with_unknown(*tests[0], unknown_scores))
        thresholds = [safe_threshold(scores, is_wrong, level, delta) for scores, is_wrong in tests]
        passed = [threshold for threshold in thresholds if threshold is not None]
        if len(passed) < len(tests):
            missing.append(MissingPromise(level, _images_needed(tests, split.recorded, level, delta)))
            continue
        threshold, (scores, is_wrong) = max(passed), tests[0]
        is_given = scores >= threshold
        kept.append(
            Promise(
                wrong_at_most=level,
                threshold=threshold,
                early=early,
                answered=float(is_given.mean()),
                wrong=float(is_wrong[is_given].mean()),
                saved=saved_by(run, early),
                unknown_refused=None if unknown_scores is None else float(1 - (unknown_scores >= threshold).mean()),
            )
        )
    return Promises(tuple(kept), tuple(missing), split.recorded)


def _with_unknown(scores: Floats, wrong: Bools, unknown_scores: Floats) -> tuple[Floats, Bools]:
    """Return scores and wrong answers of known images, followed by those of unknown images, which are all wrong."""
    return np.concatenate([scores, unknown_scores]), np.concatenate([wrong, np.ones(len(unknown_scores), bool)])


def _early_refusal(
    run: PolicyReplay, wrong: Bools, split: Split, unknown: PolicyReplay | None, level: float
) -> tuple[float | None, ...]:
    """Return the score after a cascade's first model below which to refuse at once; () for other policies.

    It is tuned to the final threshold that the tuning images suggest for a milder level, TUNING_LEVEL_FACTOR times:
    these images are few, and a threshold that is too strict would refuse images that could be answered.
    """
    final = scores_of(run, ())
    tuning_set = final[split.tuning], wrong[split.tuning]
    if unknown is not None:
        tuning_set = _with_unknown(*tuning_set, scores_of(unknown, ())[tuning_unknown(len(unknown.answered))])
    target, first_scores = naive_threshold(*tuning_set, TUNING_LEVEL_FACTOR * level), _scores(run).first
    return () if target is None or np.isnan(first_scores).all() else (early_threshold(first_scores, final, target),)


def _scores(run: PolicyReplay) -> Scores:
    assert run.scores is not None
    return run.scores


def scores_of(run: PolicyReplay, early: Sequence[float | None]) -> Floats:
    """Return the scores of the answers, (n,); -inf for images that are refused at any threshold.

    early: Promise.early, thresholds for the score after a cascade's first model; None refuses nothing, as () does.
    """
    scores, refused = _scores(run), run.in_doubt.copy()
    for limit in early:
        if limit is not None:
            refused |= scores.first < limit  # NaN, for images that ended at the first model, is never less
    return np.where(refused, -np.inf, np.nan_to_num(scores.final, nan=-np.inf))


def answered_under(run: PolicyReplay, promise: Promise) -> Bools:
    """Return which images are answered if the policy must keep a promise, (n,); it refuses the others."""
    is_answered: Bools = scores_of(run, promise.early) >= promise.threshold
    return is_answered


def _images_needed(tests: Sequence[tuple[Floats, Bools]], recorded: int, level: float, delta: float) -> int | None:
    """Return how many images in all a promise would need, None if more would not help. tests: scores and wrong."""
    needs = [(images_needed(scores, wrong, level, delta), len(scores)) for scores, wrong in tests]
    factors = [needed / n for needed, n in needs if needed is not None]
    return math.ceil(max(factors) * recorded) if len(factors) == len(tests) else None


def saved_by(run: PolicyReplay, early: Sequence[float | None]) -> float:
    """Return the share of the models' mean time that early refusal saves. early: its thresholds, see `scores_of`."""
    scores, time_ms = _scores(run), run.models_ms
    for limit in early:
        if limit is not None:
            time_ms = np.where(scores.first < limit, scores.first_ms, time_ms)
    return float(1 - time_ms.mean() / run.models_ms.mean())
