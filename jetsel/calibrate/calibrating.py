"""From a recording to a calibration, its report, and whether it should be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from jetsel.calibrate.assemble import Identity, assemble
from jetsel.calibrate.comparing import compared, differing
from jetsel.calibrate.cross_validation import CrossValidated, cross_validate
from jetsel.calibrate.findings import Comparison, Differing, Findings
from jetsel.calibrate.folds import assign_folds
from jetsel.calibrate.goal import Goal, Outcomes
from jetsel.calibrate.held_out import fit_temperatures, learn
from jetsel.calibrate.neighbourhood import nearest_in_other_folds
from jetsel.calibrate.planning import make_plan
from jetsel.calibrate.record import Loaded
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import TimeFeatures, replay_all
from jetsel.calibrate.results import Judge
from jetsel.errors import CalibrationError
from jetsel.policies.calibration import Calibration
from jetsel.policies.catalogue import CRITERIA, catalogue
from jetsel.policies.kind import Plan
from jetsel.wire import Criterion

FOLDS = 10  # section 4.2
SEED = 2018
MOST_LEFT_OUT = 200  # photographs that are listed with the reason why they are left out

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Order:
    """What the owner asked for. decides: the criterion by which installing is decided.

    installed: the owner's calibration in use, None where there is none or it was made for other models. names: of the
    classes, for the report. choice_factor: how much slower than here the board's processor makes a choice. machine:
    what the board said of itself when times and energies were measured, empty where that is not known.
    """

    names: tuple[str, ...]

    goal: Goal = field(default_factory=Goal)
    decides: Criterion = "top1"
    theta_points: float = 0.5
    installed: Calibration | None = None
    choice_factor: float = 1.0
    machine: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The calibration on all photographs, what was found on held-out ones, and whether it is better than its rival."""

    calibration: Calibration
    findings: Findings
    is_better: bool


def calibrate(
    loaded: Loaded,
    identity: Identity,
    order: Order,
    features_ms: TimeFeatures,
    progress: Progress,
) -> Calibrated:
    """Fit and compare everything on a recording, and judge the winner against the rival on held-out photographs.

    Raises CalibrationError where the photographs are too few, or the goal needs energy and it was not measured.
    """
    if order.goal.needs_energy and not loaded.recording.knows_energy:
        raise CalibrationError(f"the goal needs energy, and it is not known: {loaded.times.energy_reason}")
    recording = replace(loaded.recording, objective=order.goal.objective)
    groups = np.arange(len(recording.classes)) if recording.groups is None else recording.groups
    fold_of = assign_folds(groups, FOLDS, SEED)
    progress("choosing features", 0, 1)
    plan = make_plan(recording, fold_of, order.decides, order.theta_points, features_ms).plan
    columns = [recording.feature_names.index(name) for name in plan.features]
    near = nearest_in_other_folds(recording.features[:, columns], fold_of, plan.k)
    # Limits are meant for the criterion that decides: 60 % may be much under top1, and little under top5.
    anything = Goal(order.goal.objective)
    goals = {criterion: order.goal if criterion == order.decides else anything for criterion in CRITERIA}
    tried = cross_validate(recording, fold_of, near, plan, goals, identity, progress)
    progress("fitting on all photographs", 0, 1)
    draft = msgspec.structs.replace(_fit_on_all(recording, plan, tried, identity), labels_from=loaded.labels_from)
    judges = {
        criterion: Judge(recording, criterion, features_ms, order.choice_factor, loaded.times.energy_reason)
        for criterion in CRITERIA
    }
    comparisons: dict[str, Comparison] = {
        criterion: compared(judge, tried[criterion], draft) for criterion, judge in judges.items()
    }
    winners = {criterion: _winner(tried[criterion], judges[criterion], goals[criterion]) for criterion in CRITERIA}
    rival, rival_outcomes = _rival(order, judges[order.decides], tried[order.decides])
    is_better, verdict = _verdict(order, loaded.labels_from, winners[order.decides], rival, rival_outcomes)
    calibration = msgspec.structs.replace(
        draft,
        default_policy={criterion: one.name for criterion, one in winners.items()},
        because=verdict,
        figures={criterion: _figures(comparison) for criterion, comparison in comparisons.items()},
        rival=rival,
        energies_half_mj={} if loaded.times.energies is None else dict(loaded.times.energies.half_width_mj),
        energy_reason=loaded.times.energy_reason,
        chooser_energy_mj=comparisons[order.decides].chain.chooser_mj or None,
        machine=dict(order.machine),
    )
    others = differing(recording, tried["top1"].runs, order.names)
    return Calibrated(calibration, _findings(loaded, order, calibration, comparisons, others), is_better)


def _findings(
    loaded: Loaded,
    order: Order,
    calibration: Calibration,
    comparisons: dict[str, Comparison],
    others: list[Differing],
) -> Findings:
    """What the report shows of a calibration that is not installed yet. others: where policies differ."""
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
    plan: Plan,
    tried: Mapping[Criterion, CrossValidated],
    identity: Identity,
) -> Calibration:
    """Learn once more, from every photograph, at the operating points that cross-validation chose."""
    temperatures = fit_temperatures(recording)
    learned = {criterion: learn(recording, criterion, plan, temperatures) for criterion in CRITERIA}
    return assemble(identity, learned, {criterion: tried[criterion].chosen for criterion in CRITERIA})


@dataclass(frozen=True, eq=False)
class _Winner:
    """The policy to install for one criterion, and what it gives.

    said: what another one gives that looked better and is not by more than the noise; None where there is none such.
    """

    name: str
    outcomes: Outcomes
    said: str | None


def _winner(tried: CrossValidated, judge: Judge, goal: Goal) -> _Winner:
    """The policy that serves the goal best on held-out photographs; the best single model where none is better."""
    names = list(tried.runs)
    outcomes = [judge.outcomes(tried.runs[name]) for name in names]
    single = f"single:{judge.best_single}"
    rival = judge.outcomes(tried.runs[single])
    place = goal.best(outcomes, rival)
    wins, said = goal.compare(outcomes[place], rival)
    if wins:
        return _Winner(names[place], outcomes[place], None)
    return _Winner(single, rival, None if names[place] == single else f"{names[place]} gives {said}")


def _rival(order: Order, judge: Judge, tried: CrossValidated) -> tuple[str, Outcomes]:
    """What the winner must beat: the installed policy, or the best single model where none is installed."""
    if order.installed is None:
        name = f"single:{judge.best_single}"
        return name, judge.outcomes(tried.runs[name])
    name = order.installed.default_policy[order.decides]
    recording = judge.recording
    policy = catalogue(recording.models, order.installed)[order.decides][name]
    rows = range(len(recording.classes))
    run = replay_all(policy, recording, rows, order.decides, order.installed.temperatures, recording.models[-1])
    return f"the installed {name} of {order.installed.created}", judge.outcomes(run)


def _verdict(
    order: Order, labels_from: str | None, winner: _Winner, rival: str, outcomes: Outcomes
) -> tuple[bool, str]:
    """Whether the winner is better than the rival, and the sentence that says so and what it is said of."""
    under = f"under {order.decides}, on photographs held out"
    if labels_from is not None:
        under += f", where right means agreement with {labels_from}"
    if winner.name == rival:
        return False, f"nothing is better than {rival}, {under}{'' if winner.said is None else f': {winner.said}'}"
    is_better, said = order.goal.compare(winner.outcomes, outcomes)
    return is_better, f"{winner.name} beside {rival}, {under}: {said}"


def _figures(comparison: Comparison) -> dict[str, object]:
    """The gist of the comparison, for the artefact: accuracy, time, energy and share of each model by policy."""
    return {
        name: {
            "top1": result.top1,
            "top5": result.top5,
            "mean_ms": result.time_ms.mean,
            "mean_mj": None if result.energy_mj is None else result.energy_mj.mean,
            "runs": result.runs,
        }
        for name, result in comparison.policies.items()
    }
