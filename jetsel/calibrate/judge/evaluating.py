"""Evaluate a calibration on images that it was not made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.promise import Promises
from jetsel.base.errors import UnknownPolicyError
from jetsel.calibrate.judge.findings import PromiseCheck, Result
from jetsel.calibrate.judge.metrics import share_interval
from jetsel.calibrate.judge.promises import answered_under
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay, TimeFeatures, replay_all, share_choice_times
from jetsel.policies.policy import Policy
from jetsel.policies.registry import catalogue, no_such


class Evaluation(NamedTuple):
    """The results of policies and bounds, by name, and a check of each promise."""

    policies: dict[str, Result]
    bounds: dict[str, Result]
    promises: list[PromiseCheck]


def evaluate(
    recording: Recording, calibration: Calibration | None, policies: Mapping[str, Policy], time_features: TimeFeatures
) -> Evaluation:
    """Replay policies on a recording, and return their results.

    calibration: of the policies, None for single models only; a model without a calibration has temperature 1, as in
    the daemon. time_features: names of features -> ms to extract them.
    """
    objective = calibration.objective if calibration is not None and recording.energies is not None else "time"
    recording = replace(recording, objective=objective)
    rows = range(len(recording.classes))
    judge = Judge(recording, time_features)
    model_temperatures = {} if calibration is None else calibration.temperatures
    temperatures = {model: model_temperatures.get(model, 1.0) for model in recording.models}
    promises = {} if calibration is None else calibration.promises

    def replay_policy(policy: Policy) -> PolicyReplay:
        return replay_all(policy, recording, rows, temperatures, recording.models[-1])

    replays = share_choice_times({name: replay_policy(policy) for name, policy in policies.items()})
    results, checks = {}, []
    for name, run in replays.items():
        results[name] = judge.result(name, run)
        if name in promises:
            checks += check_promises(name, promises[name], run, ~judge.outcomes(run).correct, recording.groups)
    return Evaluation(results, judge.bounds(), checks)


def check_promises(
    policy: str, promises: Promises, run: PolicyReplay, wrong: NDArray[np.bool_], groups: NDArray[np.int64] | None
) -> list[PromiseCheck]:
    """Return whether each promised error rate of a policy holds on other images.

    run: the policy's replay on them. wrong: (n,), whether its answer is wrong. groups: (n,), near-duplicates share one.
    """
    checks = []
    for promise in promises.kept:
        is_given = answered_under(run, promise)
        interval = wrong_share = None
        if is_given.any():
            wrong_share = float(wrong[is_given].mean())
            interval = share_interval(wrong[is_given], None if groups is None else groups[is_given])
        is_above = interval is not None and interval.low > promise.wrong_at_most
        checks.append(
            PromiseCheck(
                policy=policy,
                wrong_at_most=promise.wrong_at_most,
                answered=float(is_given.mean()),
                wrong=wrong_share,
                wrong_interval=interval,
                is_kept=True if (wrong_share or 0.0) <= promise.wrong_at_most else False if is_above else None,
            )
        )
    return checks


def requested_policies(
    models: Sequence[str], calibration: Calibration | None, names: Sequence[str]
) -> dict[str, Policy]:
    """Return the calibration's policies with these names, or all if `names` is empty; raises UnknownPolicyError."""
    policies = catalogue(models, calibration)
    unknown = [name for name in names if name not in policies]
    if unknown:
        raise UnknownPolicyError(f"the family has {no_such(unknown[0], policies)}")
    return {name: policies[name] for name in names or policies}
