"""Replays a policy's own generator against a recording: what it would have answered, run and cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import JetselError
from jetsel.calibrate.recording import Recording
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Steps
from jetsel.policies.policy import Run as Asked
from jetsel.wire import Criterion

TimeFeatures = Callable[[tuple[str, ...]], float]
"""Names of features -> the milliseconds that extracting them takes on one photograph; the same at each call."""


@dataclass(frozen=True)
class Replayed:
    """One photograph under one policy. decision is None if the policy refused.

    ran: the models that ran; models_ms: their time, as recorded. choice_ms: what the policy itself took just now.
    """

    decision: Decision | None
    ran: tuple[str, ...]
    models_ms: float
    choice_ms: float


def replay(
    policy: Policy,
    recording: Recording,
    photograph: int,
    criterion: Criterion,
    temperatures: Mapping[str, float],
    fallback: str | None,
) -> Replayed:
    """Run the policy on one recorded photograph; every model is available and time never runs out."""
    features = recording.features_of(photograph, policy.features) if policy.features else None
    steps = policy(Evidence(features, fallback))
    ran: list[str] = []
    models_ms = choice_ms = 0.0
    predictions: tuple[Prediction, ...] | None = None
    while True:
        began = time.perf_counter()
        moved = _move(steps, predictions)
        choice_ms += (time.perf_counter() - began) * 1e3
        if not isinstance(moved, Asked):
            return Replayed(moved, tuple(ran), models_ms, choice_ms)
        ran += moved.models
        models_ms += sum(recording.costs_ms[model] for model in moved.models)
        predictions = tuple(
            recording.prediction(model, photograph, criterion, temperatures[model]) for model in moved.models
        )


def _move(steps: Steps, predictions: tuple[Prediction, ...] | None) -> Asked | Decision | None:
    """Let the policy go on: what it asks for, what it decided, or None if it refused."""
    try:
        return next(steps) if predictions is None else steps.send(predictions)
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision
    except JetselError:
        return None


@dataclass(frozen=True, eq=False)
class Run:
    """One policy over n photographs.

    answered: (n,) class numbers, -1 if it refused. is_top5: (n,), whether the true class is among the first five of
    the answer. ran: (n, models). choice_ms: the median of the policy's own time; it is the same work each time, and the
    rest is the machine's noise. features: those that must be extracted first, by name.
    """

    answered: NDArray[np.int64]
    is_top5: NDArray[np.bool_]
    models_ms: NDArray[np.float64]
    ran: NDArray[np.bool_]
    in_doubt: NDArray[np.bool_]
    choice_ms: float
    features: tuple[str, ...]


def replay_all(
    policy: Policy,
    recording: Recording,
    photographs: Iterable[int],
    criterion: Criterion,
    temperatures: Mapping[str, float],
    fallback: str | None,
) -> Run:
    """Replay the policy on these photographs, in their order."""
    rows = list(photographs)
    column = {model: i for i, model in enumerate(recording.models)}
    answered, is_top5, in_doubt = np.full(len(rows), -1), np.zeros(len(rows), bool), np.ones(len(rows), bool)
    models_ms, choice_ms = np.zeros(len(rows)), np.zeros(len(rows))
    ran = np.zeros((len(rows), len(column)), bool)
    for place, photograph in enumerate(rows):
        one = replay(policy, recording, photograph, criterion, temperatures, fallback)
        models_ms[place], choice_ms[place] = one.models_ms, one.choice_ms
        ran[place, [column[model] for model in one.ran]] = True
        if one.decision is not None:
            odds, true = one.decision.seen.probabilities, int(recording.classes[photograph])
            answered[place], in_doubt[place] = int(odds.argmax()), one.decision.in_doubt
            above = np.count_nonzero(odds > odds[true]) + np.count_nonzero(odds[:true] == odds[true])
            is_top5[place] = above < 5
    return Run(answered, is_top5, models_ms, ran, in_doubt, float(np.median(choice_ms)), tuple(policy.features))
