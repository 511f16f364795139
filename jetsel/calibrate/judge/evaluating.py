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
from jetsel.calibrate.judge.findings import Interval, PromiseCheck, Result
from jetsel.calibrate.judge.metrics import share_interval
from jetsel.calibrate.judge.promises import answered_under
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay, TimeFeatures, replay_all
from jetsel.policies.policy import Policy
from jetsel.policies.registry import catalogue, no_such


class Evaluation(NamedTuple):
    """The results of policies and bounds, by name, and a check of each promise."""

    policies: dict[str, Result]
    bounds: dict[str, Result]
    promises: list[PromiseCheck]


def evaluate(
    recording: Recording,
    calibration: Calibration | None,
    policies: Mapping[str, Policy],
    features_ms: TimeFeatures,
    energy_reason: str | None = None,
) -> Evaluation:
    """Replay policies on a recording, and return their results.

    A model without a calibration has temperature 1, as in the daemon. energy_reason: why energy is unknown, if it is.
    """
    objective = calibration.objective if calibration is not None and recording.knows_energy else "time"
    recording = replace(recording, objective=objective)
    rows = range(len(recording.classes))
    judge = Judge(recording, features_ms, energy_reason=energy_reason)
    model_temperatures = {} if calibration is None else calibration.temperatures
    temperatures = {model: model_temperatures.get(model, 1.0) for model in recording.models}
    promises = {} if calibration is None else calibration.promises
    promises = {name: one for name, one in promises.items() if name in policies}
    results, checks = {}, []
    for name, policy in policies.items():
        run = replay_all(policy, recording, rows, temperatures, recording.models[-1])
        results[name] = judge.result(name, run)
        if name in promises:
            checks += check_promises(name, promises[name], run, ~judge.outcomes(run).correct, recording.groups)
    return Evaluation(results, judge.bounds(), checks)


def check_promises(
    policy: str, promises: Promises, run: PolicyReplay, wrong: NDArray[np.bool_], groups: NDArray[np.int64] | None
) -> list[PromiseCheck]:
    """Return whether each promise of a policy holds on other images.

    wrong: (n,) bool. groups: (n,), see `share_interval`.
    """
    checks = []
    for promise in promises.kept:
        given = answered_under(run, promise)
        is_any = bool(given.any())
        ends = share_interval(wrong[given], None if groups is None else groups[given]) if is_any else None
        checks.append(
            PromiseCheck(
                policy=policy,
                wrong_at_most=promise.wrong_at_most,
                answered=float(given.mean()),
                wrong=float(wrong[given].mean()) if is_any else None,
                wrong_interval=ends,
                is_kept=_is_kept(float(wrong[given].mean()) if is_any else 0.0, ends, promise.wrong_at_most),
            )
        )
    return checks


def _is_kept(wrong: float, interval: Interval | None, level: float) -> bool | None:
    if wrong <= level:
        return True
    return False if interval is not None and interval.low > level else None


def requested_policies(
    models: Sequence[str],
    calibration: Calibration | None,
    names: Sequence[str],
) -> dict[str, Policy]:
    """Return the policies with these names, or all if `names` is empty; raises UnknownPolicyError."""
    policies = catalogue(models, calibration)
    unknown = [name for name in names if name not in policies]
    if unknown:
        raise UnknownPolicyError(f"the family has {no_such(unknown[0], policies)}")
    return {name: policies[name] for name in names or policies}
