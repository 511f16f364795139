"""Turn a recording into a calibration, its findings, and the decision whether to install it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from jetsel.artefact.calibration import Calibration, CalibrationImages
from jetsel.artefact.promise import Promises
from jetsel.base.errors import CalibrationError, RequirementsError
from jetsel.base.names import count_reasons
from jetsel.calibrate.fit.cross_validation import CrossValidated, cross_validate, draft_calibration, expected_statistics
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.judge.decision import InstallDecision, InstallRequest, decide
from jetsel.calibrate.judge.doubtful import find_doubtful
from jetsel.calibrate.judge.findings import Comparison, Findings, FittedChain, Result
from jetsel.calibrate.judge.promises import Split, answered_under, promises_by_policy, replay_unknown
from jetsel.calibrate.judge.results import Judge, class_findings, describe_image_kinds, find_differing
from jetsel.calibrate.record.recording import LoadedRecording, Recording
from jetsel.calibrate.record.replay import Outcomes, PolicyReplay, TimeFeatures
from jetsel.calibrate.record.workers import Reporter
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies.chain import NAME as CHAIN

FOLDS = 10  # Taylor et al., section 4.2
SEED = 2018
MOST_LEFT_OUT = 200  # skipped files that the findings list, each with its reason


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A calibration fitted on all images, and what the report shows."""

    calibration: Calibration
    findings: Findings
    outcomes: Outcomes  # of the default policy, on held-out images


def calibrate(
    loaded: LoadedRecording,
    request: InstallRequest,
    time_features: TimeFeatures,
    report: Reporter,
    unknown: Recording | None = None,
) -> Calibrated:
    """Fit every policy on a recording, choose the default policy, and compare it with its rival on held-out images.

    request: the goal, the policy in use and the owner's limits. unknown: a recording of images that belong to no class
    of the family, by the same models; None if there are none. Raises CalibrationError if the goal needs energy that was
    not measured, or if the error rate that the owner requires cannot be promised.
    """
    if request.goal.needs_energy and loaded.recording.energies is None:
        raise CalibrationError(f"the goal needs energy, but energy is unknown: {loaded.times.energy_reason}")
    recording = replace(loaded.recording, objective=request.goal.objective)
    groups = np.arange(len(recording.classes)) if recording.groups is None else recording.groups
    fold_of = assign_folds(groups, FOLDS, SEED)
    report("reading the recording", 0, 1)
    unfitted = draft_calibration(loaded.identity, recording, fit_temperatures(recording))
    validated = cross_validate(recording, unfitted, fold_of, request.goal, time_features, report, request.kinds)
    judge = Judge(recording, time_features, request.choice_factor)
    # A chain that adds nothing is reported but not offered, because each of its answers would pay for features.
    is_offered = request.policy == CHAIN or (validated.lift is not None and validated.lift.adds)
    offered = {name: run for name, run in validated.runs.items() if is_offered or name != CHAIN}
    decision = decide(request, loaded, offered, validated.points, judge)
    report("testing promises", 0, 1)
    promises: dict[str, Promises] = {}
    if loaded.labels_from is None:  # without labels, wrong answers cannot be counted
        unknown_replays = {} if unknown is None else replay_unknown(recording, unknown, validated.calibration)
        split = Split.of(fold_of, recording.groups)
        promises = promises_by_policy(
            offered | validated.front, recording.classes, split, unknown_replays, decision.winner, len(offered)
        )
    _check_required_promise(request.wrong_at_most, promises.get(decision.winner))
    comparison = _compare_policies(judge, validated, is_offered=is_offered)
    calibration = msgspec.structs.replace(
        _with_decision(validated.calibration, loaded, request, decision, comparison),
        parts={name: part for name, part in validated.calibration.parts.items() if name in offered},
        promises=promises,
        images=CalibrationImages(
            count=len(recording.classes),
            labels_from=loaded.labels_from,
            unknown=0 if unknown is None else len(unknown.classes),
        ),
        expected=expected_statistics(recording, validated.runs[decision.winner], unfitted),
    )
    findings = _collect_findings(loaded, request, calibration, decision, comparison, judge, validated.runs)
    return Calibrated(calibration, findings, decision.outcomes)


def _compare_policies(judge: Judge, validated: CrossValidated, *, is_offered: bool) -> Comparison:
    """Return the held-out results of all policies. is_offered: whether the calibration includes the policy "chain"."""
    chain = None
    if validated.lift is not None:
        run, recording = validated.runs[CHAIN], judge.recording
        chooser_ms = judge.chooser_ms(run)
        chooser_mj = None if recording.energies is None else recording.chooser_mj(chooser_ms)
        kinds = describe_image_kinds(recording, run) if is_offered else []
        chain = FittedChain(validated.lift, is_offered, chooser_ms, chooser_mj, kinds)
    return Comparison(
        best_single=judge.recording.best_single,
        policies={name: judge.result(name, run) for name, run in validated.runs.items()},
        bounds=judge.bounds(),
        chain=chain,
        front={name: judge.result(name, run) for name, run in validated.front.items()},
    )


def _check_required_promise(wrong_at_most: float | None, promises: Promises | None) -> None:
    """Raise CalibrationError if the default policy cannot guarantee the error rate that the owner requires.

    promises: the error rates that it can guarantee; None if the images have no labels.
    """
    if wrong_at_most is None:
        return
    if promises is None:
        raise CalibrationError("--wrong-at-most: without labels nothing is known of wrong answers: label the images")
    try:
        promises.promise_for(wrong_at_most)
    except RequirementsError as error:
        raise CalibrationError(f"--wrong-at-most: {error}") from error


def _with_decision(
    fitted: Calibration,
    loaded: LoadedRecording,
    request: InstallRequest,
    decision: InstallDecision,
    comparison: Comparison,
) -> Calibration:
    """Return the fitted calibration with the fields filled in that depend on the comparison of policies."""
    return msgspec.structs.replace(
        fitted,
        default_policy=decision.winner,
        because=decision.verdict,
        wrong_at_most=request.wrong_at_most,
        rival=decision.rival,
        figures={name: _artefact_figures(result) for name, result in (comparison.policies | comparison.front).items()},
        energy=msgspec.structs.replace(
            fitted.energy,
            chooser_mj=None if comparison.chain is None else comparison.chain.chooser_mj or None,
            reason=loaded.times.energy_reason,
        ),
        machine=dict(request.machine),
    )


def _artefact_figures(result: Result) -> dict[str, object]:
    """Return the figures that the calibration's file keeps: accuracy, mean time and energy, runs of each model."""
    return {
        "top1": result.top1,
        "mean_ms": result.time_ms.mean,
        "mean_mj": None if result.energy_mj is None else result.energy_mj.mean,
        "runs": result.runs,
    }


def _collect_findings(
    loaded: LoadedRecording,
    request: InstallRequest,
    calibration: Calibration,
    decision: InstallDecision,
    comparison: Comparison,
    judge: Judge,
    runs: Mapping[str, PolicyReplay],
) -> Findings:
    """Return the findings, which the report shows and `--json` prints. runs: policy -> its held-out replay."""
    recording, names, temperatures = judge.recording, loaded.class_names, calibration.temperatures
    is_allowed, winner = request.goal.is_within_limits(decision.outcomes), runs[decision.winner]
    is_shown_rival = decision.rival == f"single:{comparison.best_single}"
    findings = Findings(
        calibration=calibration.facts,
        skipped=count_reasons([reason for _, reason in loaded.left_out]),
        left_out=list(loaded.left_out[:MOST_LEFT_OUT]),
        conditions=dict(loaded.times.conditions),
        noisy=loaded.times.noisy,
        dropped=dict(loaded.dropped),
        installed=is_allowed and (decision.is_better or request.is_firm),
        is_allowed=is_allowed,
        verdict=decision.verdict + ("" if is_shown_rival else f"; the table compares with {comparison.best_single}"),
        comparison=comparison,
        differing=find_differing(recording, runs, names, temperatures),
        doubtful=None if loaded.labels_from is not None else find_doubtful(recording, names, temperatures),
        current=None if request.in_use is None else judge.result(decision.rival, decision.rival_run),
        command=request.command,
    )
    is_given = None if findings.shown_promise is None else answered_under(winner, findings.shown_promise)
    return msgspec.structs.replace(
        findings, classes=class_findings(recording.classes, winner.answered, names, is_given)
    )
