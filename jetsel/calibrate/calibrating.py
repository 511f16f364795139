"""From a recording to a calibration, its report, and the decision whether to install it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.promise import Promises
from jetsel.base.errors import CalibrationError, RequirementsError
from jetsel.calibrate.fit.assemble import Identity, assemble, expected, learn
from jetsel.calibrate.fit.cross_validation import CrossValidated, cross_validate
from jetsel.calibrate.fit.goal import Outcomes
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.judge.comparing import compared
from jetsel.calibrate.judge.decision import InstallDecision, InstallRequest, decide
from jetsel.calibrate.judge.doubtful import doubtful
from jetsel.calibrate.judge.findings import Comparison, Findings, ImageSample, PromiseFindings
from jetsel.calibrate.judge.promises import Split, promise_findings, promises_by_policy, replay_unknown
from jetsel.calibrate.judge.results import Judge, differing, mistakes
from jetsel.calibrate.record import LoadedRecording
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Run, TimeFeatures
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies.chain import NAME as CHAIN

FOLDS = 10  # section 4.2
SEED = 2018
MOST_LEFT_OUT = 200  # photographs that are listed with the reason why they are left out

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The calibration on all photographs, and what was found on held-out ones.

    outcomes: of the winner there. is_better: whether it is to replace what is in use; always if nobody chose that.
    is_allowed: whether it keeps every limit, without which it is never installed.
    """

    calibration: Calibration
    findings: Findings
    outcomes: Outcomes
    is_better: bool
    is_allowed: bool


def calibrate(
    loaded: LoadedRecording,
    identity: Identity,
    order: InstallRequest,
    features_ms: TimeFeatures,
    progress: Progress,
    unknown: Recording | None = None,
) -> Calibrated:
    """Fit and compare everything on a recording, and judge the winner against the rival on held-out images.

    unknown: images of nothing that the family knows, by the same models; None if there are none. Raises
    CalibrationError if the images are too few, the goal needs energy and it was not measured, or what the family is to
    promise cannot be promised.
    """
    fitted = _fit(loaded, identity, order, features_ms, progress)
    recording, tried, draft = fitted.recording, fitted.tried, fitted.draft
    judge = Judge(recording, features_ms, order.choice_factor, loaded.times.energy_reason)
    # A chain that adds nothing stands in the report, and is not offered: each of its answers would pay for features.
    is_offered = order.offers_chain or order.policy == CHAIN or (tried.lift is not None and tried.lift.adds)
    withheld = () if is_offered else (CHAIN,)
    comparison = compared(judge, tried, draft, is_offered=is_offered)
    decision = decide(order, loaded, tried, judge, withheld)
    progress("testing promises", 0, 1)
    promises = _promises(fitted, judge, decision.winner, withheld, unknown, order)
    calibration = _decided(draft, loaded, order, decision, comparison, withheld)
    calibration = msgspec.structs.replace(
        calibration,
        promises=promises,
        unknown_images=0 if unknown is None else len(unknown.classes),
        figures=_figures(comparison, judge, tried.front),
        expected=expected(recording, tried.runs[decision.winner], draft),
    )
    runs, temperatures = tried.runs, draft.temperatures
    current = None if order.in_use is None else judge.result(decision.rival, decision.rival_run)
    findings = msgspec.structs.replace(
        _findings(loaded, order, calibration, comparison, differing(recording, runs, order.names, temperatures)),
        mistakes=mistakes(recording, runs, decision.winner, order.names, temperatures),
        current=current,
        doubtful=None if draft.labels_from is not None else doubtful(recording, order.names, temperatures),
        promises=_promise_findings(calibration, judge, runs, order.names),
        is_allowed=order.goal.keeps(decision.outcomes),
    )
    return Calibrated(calibration, findings, decision.outcomes, decision.is_better, findings.is_allowed)


def _decided(
    draft: Calibration,
    loaded: LoadedRecording,
    order: InstallRequest,
    decision: InstallDecision,
    comparison: Comparison,
    withheld: Sequence[str],
) -> Calibration:
    """Return the calibration with what was decided, and what was measured of energy and of the machine."""
    return msgspec.structs.replace(
        draft,
        parts={name: part for name, part in draft.parts.items() if name not in withheld},
        default_policy=decision.winner,
        because=decision.verdict,
        wrong_at_most=order.wrong_at_most,
        rival=decision.rival,
        energies_half_mj={} if loaded.times.energies is None else dict(loaded.times.energies.half_width_mj),
        energy_reason=loaded.times.energy_reason,
        chooser_energy_mj=None if comparison.chain is None else comparison.chain.chooser_mj or None,
        machine=dict(order.machine),
    )


def _promises(
    fitted: _Fitted,
    judge: Judge,
    default: str,
    withheld: Sequence[str],
    unknown: Recording | None,
    order: InstallRequest,
) -> dict[str, Promises]:
    """Return what every policy promises; nothing if there were no labels, since nothing is known of errors then.

    Raises CalibrationError if the family is to promise what it cannot.
    """
    if fitted.draft.labels_from is not None:
        if order.wrong_at_most is not None:
            raise CalibrationError(
                "--wrong-at-most: without labels nothing is known of wrong answers: label the images"
            )
        return {}
    split = Split.of(fitted.fold_of, fitted.recording.groups)
    strange = {} if unknown is None else replay_unknown(fitted.recording, unknown, fitted.draft)
    tried = fitted.tried
    rivals = {name: run for name, run in tried.runs.items() if name not in withheld}
    runs = rivals | {name: run for name, run in tried.front.items() if not name.startswith(tuple(withheld))}
    wrong = {name: ~judge.outcomes(run).correct for name, run in runs.items()}
    found = promises_by_policy(runs, wrong, split, strange, default, len(rivals))
    if order.wrong_at_most is not None:
        try:
            found[default].at(order.wrong_at_most)
        except RequirementsError as error:
            raise CalibrationError(f"--wrong-at-most: {error}") from error
    return found


def _promise_findings(
    calibration: Calibration, judge: Judge, runs: Mapping[str, Run], names: Sequence[str]
) -> PromiseFindings | None:
    """Return what the report shows of the default policy and of the best single model; None if nothing is promised."""
    if not calibration.promises:
        return None
    shown = dict.fromkeys((calibration.default_policy, f"single:{judge.best_single}"))
    return promise_findings(
        {name: calibration.promises[name] for name in shown},
        runs,
        {name: ~judge.outcomes(runs[name]).correct for name in shown},
        judge.recording.classes,
        names,
        calibration.unknown_images,
    )


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What cross-validation gives, and the calibration that is fitted on all images and not decided on yet.

    fold_of: (n,), the fold of each image.
    """

    recording: Recording
    fold_of: NDArray[np.int64]
    tried: CrossValidated
    draft: Calibration


def _fit(
    loaded: LoadedRecording, identity: Identity, order: InstallRequest, features_ms: TimeFeatures, progress: Progress
) -> _Fitted:
    if order.goal.needs_energy and not loaded.recording.knows_energy:
        raise CalibrationError(f"the goal needs energy, but energy is unknown: {loaded.times.energy_reason}")
    recording = replace(loaded.recording, objective=order.goal.objective)
    groups = np.arange(len(recording.classes)) if recording.groups is None else recording.groups
    fold_of = assign_folds(groups, FOLDS, SEED)
    progress("reading the recording", 0, 1)
    table = recording.table(fit_temperatures(recording))
    tried = cross_validate(recording, table, fold_of, order.goal, identity, features_ms, progress, order.kinds)
    progress("fitting on all images", 0, 1)
    learned = learn(table, order.kinds)
    draft = msgspec.structs.replace(
        assemble(identity, recording, learned, tried.chosen), labels_from=loaded.labels_from
    )
    return _Fitted(recording, fold_of, tried, draft)


def _findings(
    loaded: LoadedRecording,
    order: InstallRequest,
    calibration: Calibration,
    comparison: Comparison,
    others: ImageSample,
) -> Findings:
    """What the report shows of a calibration that is not installed yet. others: if policies differ."""
    return Findings(
        family=loaded.family,
        created=calibration.created,
        photographs=calibration.photographs,
        skipped=dict(loaded.skipped),
        left_out=[(path, reason) for path, reason in loaded.left_out[:MOST_LEFT_OUT]],
        labels_from=loaded.labels_from,
        objective=order.goal.objective,
        conditions=dict(loaded.times.conditions),
        noisy=loaded.times.noisy,
        dropped=dict(loaded.dropped),
        costs_ms=dict(calibration.costs_ms),
        energies_mj=dict(calibration.energies_mj),
        energies_half_mj=dict(calibration.energies_half_mj),
        energy_reason=calibration.energy_reason,
        identities=dict(loaded.identities),
        winner=calibration.default_policy,
        rival=calibration.rival or "",
        installed=False,
        verdict=calibration.because,
        comparison=comparison,
        differing=others,
    )


def _figures(comparison: Comparison, judge: Judge, front: Mapping[str, Run]) -> dict[str, object]:
    """The gist of the comparison, for the artefact: accuracy, time, energy and share of each model by policy."""
    results = comparison.policies | {name: judge.result(name, run) for name, run in front.items()}
    return {
        name: {
            "top1": result.top1,
            "mean_ms": result.time_ms.mean,
            "mean_mj": None if result.energy_mj is None else result.energy_mj.mean,
            "runs": result.runs,
        }
        for name, result in results.items()
    }
