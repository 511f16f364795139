"""Replay a policy's generator on a recording, to find its answers, the models that it runs, and its cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.promise import log_odds
from jetsel.base.errors import JetselError
from jetsel.calibrate.record.recording import Recording
from jetsel.policies.cascade import Cascade
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps

TimeFeatures = Callable[[tuple[str, ...]], float]
"""Names of features -> milliseconds to extract them from one image; repeated calls return the same value."""


@dataclass(frozen=True)
class Replayed:
    """The replay of one image. decision: None if the policy refused.

    ran: the models that ran. models_ms: their recorded time. choice_ms: the policy's own time in this replay. score: of
    the decision, see `log_odds`. first: a cascade's score after its first model, and that model's time; None if the
    cascade ended there.
    """

    decision: Decision | None
    ran: tuple[str, ...]
    models_ms: float
    choice_ms: float
    score: float | None
    first: tuple[float, float] | None


def replay(
    policy: Policy,
    recording: Recording,
    photograph: int,
    temperatures: Mapping[str, float],
    fallback: str | None,
) -> Replayed:
    """Replay the policy on one recorded image; every model is available and time never runs out."""
    features = recording.features_of(photograph, policy.features) if policy.features else None
    steps = policy(Evidence(features, fallback))
    ran: list[str] = []
    models_ms = choice_ms = 0.0
    predictions: tuple[Prediction, ...] | None = None
    replies: list[Prediction] = []
    first: tuple[float, float] | None = None
    while True:
        began = time.perf_counter()
        moved = _move(steps, predictions)
        choice_ms += (time.perf_counter() - began) * 1e3
        if not isinstance(moved, Run):
            score = None if moved is None else float(log_odds(moved.prediction.confidence))
            return Replayed(moved, tuple(ran), models_ms, choice_ms, score, first)
        if replies and isinstance(policy, Cascade):
            first = float(log_odds(policy.answer(replies).confidence)), models_ms
        ran += moved.models
        models_ms += sum(recording.costs_ms[model] for model in moved.models)
        predictions = tuple(recording.prediction(model, photograph, temperatures[model]) for model in moved.models)
        replies += predictions


def _move(steps: Steps, predictions: tuple[Prediction, ...] | None) -> Run | Decision | None:
    """Resume the policy, and return the models that it requests, its decision, or None if it refused."""
    try:
        return next(steps) if predictions is None else steps.send(predictions)
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision
    except JetselError:
        return None


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of n answers, see `log_odds`. final: (n,), NaN if the policy refused.

    first: (n,), scores after a cascade's first model, NaN for images that ended there. first_ms: (n,), that model's
    time.
    """

    final: NDArray[np.float64]
    first: NDArray[np.float64]
    first_ms: NDArray[np.float64]

    @classmethod
    def of(cls, replayed: Sequence[Replayed]) -> Scores:
        """Return the scores of replayed images."""
        firsts = [one.first or (np.nan, 0.0) for one in replayed]
        final = np.array([np.nan if one.score is None else one.score for one in replayed])
        return cls(final, np.array([first for first, _ in firsts]), np.array([spent_ms for _, spent_ms in firsts]))

    @classmethod
    def joined(cls, parts: Sequence[Scores], order: NDArray[np.int64]) -> Scores:
        """Return the concatenated scores of several sets of images, sorted by `order`."""
        names = ("final", "first", "first_ms")
        return cls(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in names))


@dataclass(frozen=True, eq=False)
class PolicyReplay:
    """The replay of one policy on n images.

    answered: (n,) class numbers, -1 for a refusal. is_top5: (n,), whether the true class is among the first five. ran:
    (n, models). choice_ms: median of the policy's own time, which is the same for every image except for noise.
    features: names of the features that the policy needs. scores: None for bounds, which are no policies.
    """

    answered: NDArray[np.int64]
    is_top5: NDArray[np.bool_]
    models_ms: NDArray[np.float64]
    ran: NDArray[np.bool_]
    in_doubt: NDArray[np.bool_]
    choice_ms: float
    features: tuple[str, ...]
    scores: Scores | None = None


def replay_all(
    policy: Policy,
    recording: Recording,
    photographs: Iterable[int],
    temperatures: Mapping[str, float],
    fallback: str | None,
) -> PolicyReplay:
    """Replay the policy on these images, in their order."""
    rows = list(photographs)
    column = {model: i for i, model in enumerate(recording.models)}
    answered, is_top5, in_doubt = np.full(len(rows), -1), np.zeros(len(rows), bool), np.ones(len(rows), bool)
    models_ms, choice_ms = np.zeros(len(rows)), np.zeros(len(rows))
    ran = np.zeros((len(rows), len(column)), bool)
    replayed = []
    for place, photograph in enumerate(rows):
        one = replay(policy, recording, photograph, temperatures, fallback)
        replayed.append(one)
        models_ms[place], choice_ms[place] = one.models_ms, one.choice_ms
        ran[place, [column[model] for model in one.ran]] = True
        if one.decision is not None:
            odds, true = one.decision.prediction.probabilities, int(recording.classes[photograph])
            answered[place], in_doubt[place] = int(odds.argmax()), one.decision.in_doubt
            above = np.count_nonzero(odds > odds[true]) + np.count_nonzero(odds[:true] == odds[true])
            is_top5[place] = above < 5
    spent_ms = float(np.median(choice_ms))
    return PolicyReplay(
        answered, is_top5, models_ms, ran, in_doubt, spent_ms, tuple(policy.features), Scores.of(replayed)
    )
