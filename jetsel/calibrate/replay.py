"""Replays a policy's own generator against a recording: what it would have answered, run and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jetsel.calibrate.recording import Recording
from jetsel.errors import JetselError
from jetsel.selection.policy import Decision, Evidence, Policy
from jetsel.wire import Criterion


@dataclass(frozen=True)
class Replayed:
    """One photograph under one policy. decision is None where the policy refused; cost_ms is of the models that ran."""

    decision: Decision | None
    ran: tuple[str, ...]
    cost_ms: float


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
    cost_ms = 0.0
    try:
        asked = next(steps)
        while True:
            ran += asked.models
            cost_ms += sum(recording.costs_ms[model] for model in asked.models)
            asked = steps.send(
                tuple(recording.prediction(model, photograph, criterion, temperatures[model]) for model in asked.models)
            )
    except StopIteration as stop:
        return Replayed(stop.value, tuple(ran), cost_ms)
    except JetselError:
        return Replayed(None, tuple(ran), cost_ms)


@dataclass(frozen=True)
class Outcome:
    """A policy over a whole recording. runs: model -> share of the photographs that it ran on."""

    accuracy: float
    mean_ms: float
    p95_ms: float
    runs: dict[str, float]
    in_doubt: float


def judge_policy(
    policy: Policy,
    recording: Recording,
    criterion: Criterion,
    temperatures: Mapping[str, float],
    fallback: str | None,
    chooser_ms: float = 0.0,
) -> Outcome:
    """Replay the policy on every photograph. chooser_ms: the time of its features and choice, added to each."""
    right = recording.right(criterion)
    column = {model: i for i, model in enumerate(recording.models)}
    replayed = [replay(policy, recording, i, criterion, temperatures, fallback) for i in range(len(recording.classes))]
    correct = [r.decision is not None and right[i, column[r.decision.seen.model]] for i, r in enumerate(replayed)]
    costs = np.array([r.cost_ms for r in replayed]) + chooser_ms
    runs = {model: float(np.mean([model in r.ran for r in replayed])) for model in recording.models}
    doubt = float(np.mean([r.decision is None or r.decision.in_doubt for r in replayed]))
    return Outcome(float(np.mean(correct)), float(costs.mean()), float(np.quantile(costs, 0.95)), runs, doubt)
