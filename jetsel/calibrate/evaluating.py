"""What a calibration gives on photographs that it was not made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jetsel.base.errors import UnknownPolicyError
from jetsel.calibrate.findings import Result
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import TimeFeatures, replay_all
from jetsel.calibrate.results import Judge
from jetsel.policies.calibration import Calibration
from jetsel.policies.policy import Policy
from jetsel.policies.registry import catalogue, no_such
from jetsel.wire import Criterion


def evaluate(
    recording: Recording,
    calibration: Calibration | None,
    criterion: Criterion,
    policies: Mapping[str, Policy],
    features_ms: TimeFeatures,
    energy_reason: str | None = None,
) -> tuple[dict[str, Result], dict[str, Result]]:
    """Replay policies of the calibration, None for none, on a recording; return their results, and the bounds.

    A model that the calibration does not know has the temperature 1, as in the daemon. energy_reason: why the recording
    knows no energy, if it does not.
    """
    objective = calibration.objective if calibration is not None and recording.knows_energy else "time"
    recording = replace(recording, objective=objective)
    rows = range(len(recording.classes))
    judge = Judge(recording, criterion, features_ms, energy_reason=energy_reason)
    known = {} if calibration is None else calibration.temperatures
    temperatures = {model: known.get(model, 1.0) for model in recording.models}
    results = {}
    for name, policy in policies.items():
        run = replay_all(policy, recording, rows, criterion, temperatures, recording.models[-1])
        results[name] = judge.result(name, run)
    return results, judge.bounds()


def asked(
    models: Sequence[str],
    calibration: Calibration | None,
    criterion: Criterion,
    wanted: Sequence[str],
) -> dict[str, Policy]:
    """Return the policies with these names, all for none.

    Raises UnknownPolicyError for one that is not.
    """
    policies = catalogue(models, calibration)[criterion]
    unknown = [name for name in wanted if name not in policies]
    if unknown:
        raise UnknownPolicyError(f"the family has {no_such(unknown[0], policies)}")
    return {name: policies[name] for name in wanted or policies}
