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
from jetsel.calibrate.fit.assemble import Identity, assemble, expected, fit_temperatures, learn
from jetsel.calibrate.fit.cross_validation import CrossValidated, cross_validate
from jetsel.calibrate.fit.folds import nearest_in_other_folds
from jetsel.calibrate.fit.goal import Goal, Outcomes
from jetsel.calibrate.fit.selection import make_plan
from jetsel.calibrate.judge.comparing import compared
from jetsel.calibrate.judge.decision import TOP, InstallDecision, InstallRequest, decide
from jetsel.calibrate.judge.doubtful import doubtful
from jetsel.calibrate.judge.findings import Comparison, Findings, ImageSample, Lift, PromiseFindings
from jetsel.calibrate.judge.promises import Split, promise_findings, promises_by_policy, replay_unknown
from jetsel.calibrate.judge.results import Judge, differing, mistakes
from jetsel.calibrate.record import LoadedRecording
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Run, TimeFeatures
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies.kind import ChainPlan, Kind
from jetsel.policies.registry import CRITERIA
from jetsel.wire import Criterion

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
    judges = {
        criterion: Judge(recording, criterion, features_ms, order.choice_factor, loaded.times.energy_reason)
        for criterion in CRITERIA
    }
    comparisons: dict[str, Comparison] = {
        criterion: compared(judge, tried[criterion], draft, fitted.lift if criterion == order.decides else None)
        for criterion, judge in judges.items()
        if criterion != "top5" or order.has_top5
    }
    # A chain that adds nothing stands in the report, and is not offered: each of its answers would pay for features.
    withheld = () if fitted.lift.offered else ("chain",)
    decision = decide(order, loaded, tried, judges, fitted.goals, withheld)
    default = decision.defaults["top1"]
    progress("testing promises", 0, 1)
    promises = _promises(fitted, judges, decision.defaults, withheld, unknown, order)
    calibration = _decided(draft, loaded, order, decision, comparisons[order.decides], withheld)
    calibration = msgspec.structs.replace(
        calibration,
        promises=promises,
        unknown_images=0 if unknown is None else len(unknown.classes),
        figures={
            criterion: _figures(comparison, judges[comparison.criterion], tried[comparison.criterion].front)
            for criterion, comparison in comparisons.items()
        },
        expected=expected(recording, tried["top1"].runs[default], draft),
    )
    runs, temperatures = tried["top1"].runs, draft.temperatures
    current = None if order.in_use is None else judges[order.decides].result(decision.rival, decision.rival_run)
    findings = msgspec.structs.replace(
        _findings(loaded, order, calibration, comparisons, differing(recording, runs, order.names, temperatures)),
        mistakes=mistakes(recording, runs, default, order.names, temperatures),
        current=current,
        doubtful=None if draft.labels_from is not None else doubtful(recording, order.names, temperatures),
        promises=_promise_findings(calibration, judges[order.decides], tried[order.decides].runs, order.names),
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
        default_policy=decision.defaults,
        because=decision.verdict,
        wrong_at_most=order.wrong_at_most,
        rival=decision.rival,
        energies_half_mj={} if loaded.times.energies is None else dict(loaded.times.energies.half_width_mj),
        energy_reason=loaded.times.energy_reason,
        chooser_energy_mj=comparison.chain.chooser_mj or None,
        machine=dict(order.machine),
    )


def _promises(
    fitted: _Fitted,
    judges: Mapping[Criterion, Judge],
    defaults: Mapping[Criterion, str],
    withheld: Sequence[str],
    unknown: Recording | None,
    order: InstallRequest,
) -> dict[Criterion, dict[str, Promises]]:
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
    found: dict[Criterion, dict[str, Promises]] = {}
    for criterion, tried in fitted.tried.items():
        strange = {} if unknown is None else replay_unknown(fitted.recording, unknown, fitted.draft, criterion)
        rivals = {name: run for name, run in tried.runs.items() if name not in withheld}
        runs = rivals | tried.front
        wrong = {name: ~judges[criterion].outcomes(run).correct for name, run in runs.items()}
        found[criterion] = promises_by_policy(runs, wrong, split, strange, defaults[criterion], len(rivals))
    if order.wrong_at_most is not None:
        try:
            found[order.decides][defaults[order.decides]].at(order.wrong_at_most)
        except RequirementsError as error:
            raise CalibrationError(f"--wrong-at-most: {error}") from error
    return found


def _promise_findings(
    calibration: Calibration, judge: Judge, runs: Mapping[str, Run], names: Sequence[str]
) -> PromiseFindings | None:
    """Return what the report shows of the default policy and of the best single model; None if nothing is promised."""
    if not calibration.promises:
        return None
    shown = dict.fromkeys((calibration.default_policy[judge.criterion], f"single:{judge.best_single}"))
    return promise_findings(
        {name: calibration.promises[judge.criterion][name] for name in shown},
        runs,
        {name: ~judge.outcomes(runs[name]).correct for name in shown},
        judge.recording.classes,
        names,
        calibration.unknown_images,
    )


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What cross-validation gives, and the calibration that is fitted on all images and not decided on yet.

    fold_of: (n,), the fold of each image. goals: by criterion. lift: what the chain's features add.
    """

    recording: Recording
    fold_of: NDArray[np.int64]
    goals: dict[Criterion, Goal]
    tried: Mapping[Criterion, CrossValidated]
    draft: Calibration
    lift: Lift


def _fit(
    loaded: LoadedRecording, identity: Identity, order: InstallRequest, features_ms: TimeFeatures, progress: Progress
) -> _Fitted:
    if order.goal.needs_energy and not loaded.recording.knows_energy:
        raise CalibrationError(f"the goal needs energy, but energy is unknown: {loaded.times.energy_reason}")
    if order.decides == "top5":
        check_top5(len(order.names))
    recording = replace(loaded.recording, objective=order.goal.objective)
    groups = np.arange(len(recording.classes)) if recording.groups is None else recording.groups
    fold_of = assign_folds(groups, FOLDS, SEED)
    progress("choosing features", 0, 1)
    planned = make_plan(recording, fold_of, order.decides, order.theta_points, features_ms)
    plan, judged = planned.plan, planned.judgement
    offers_chain = judged.adds or order.offers_chain or order.policy == "chain"
    lift = Lift(100 * judged.lift, 100 * judged.error, 100 * judged.cost, judged.doubt, offers_chain)
    columns = [recording.feature_names.index(name) for name in plan.features]
    near = nearest_in_other_folds(recording.features[:, columns], fold_of, plan.k)
    # Limits are meant for the criterion that decides: 60 % may be much under top1, and little under top5.
    anything = Goal(order.goal.objective, may_lose_points=order.goal.may_lose_points)
    goals = {criterion: order.goal if criterion == order.decides else anything for criterion in CRITERIA}
    tried = cross_validate(recording, fold_of, near, plan, goals, identity, progress, order.kinds)
    progress("fitting on all images", 0, 1)
    draft = msgspec.structs.replace(
        _fit_on_all(recording, plan, tried, identity, order.kinds), labels_from=loaded.labels_from
    )
    return _Fitted(recording, fold_of, goals, tried, draft, lift)


def check_top5(classes: int) -> None:
    """Raise CalibrationError for a family of so few classes that top5 says nothing of it."""
    if classes <= TOP:
        raise CalibrationError(
            f"--criterion top5: the family has only {classes} classes, so every label is among the first five; use top1"
        )


def _findings(
    loaded: LoadedRecording,
    order: InstallRequest,
    calibration: Calibration,
    comparisons: dict[str, Comparison],
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
        decides=order.decides,
        defaults=dict(calibration.default_policy),
        winner=calibration.default_policy[order.decides],
        rival=calibration.rival or "",
        installed=False,
        verdict=calibration.because,
        features=list(calibration.features),
        comparisons=comparisons,
        differing=others,
    )


def _fit_on_all(
    recording: Recording,
    plan: ChainPlan,
    tried: Mapping[Criterion, CrossValidated],
    identity: Identity,
    kinds: Sequence[Kind],
) -> Calibration:
    """Learn once more, from every photograph, at the operating points that cross-validation chose."""
    temperatures = fit_temperatures(recording)
    learned = {criterion: learn(recording, criterion, plan, temperatures, kinds) for criterion in CRITERIA}
    return assemble(identity, learned, {criterion: tried[criterion].chosen for criterion in CRITERIA})


def _figures(comparison: Comparison, judge: Judge, front: Mapping[str, Run]) -> dict[str, object]:
    """The gist of the comparison, for the artefact: accuracy, time, energy and share of each model by policy."""
    results = comparison.policies | {name: judge.result(name, run) for name, run in front.items()}
    return {
        name: {
            "top1": result.top1,
            "top5": result.top5,
            "mean_ms": result.time_ms.mean,
            "mean_mj": None if result.energy_mj is None else result.energy_mj.mean,
            "runs": result.runs,
        }
        for name, result in results.items()
    }
