"""From a recording to a calibration, its report, and whether it should be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.assemble import Identity, assemble
from jetsel.calibrate.comparing import compared
from jetsel.calibrate.cross_validation import CrossValidated, cross_validate
from jetsel.calibrate.expecting import expected
from jetsel.calibrate.findings import Comparison, Findings, ImageSample, Lift
from jetsel.calibrate.folds import assign_folds
from jetsel.calibrate.goal import Goal, Outcomes
from jetsel.calibrate.held_out import fit_temperatures, learn
from jetsel.calibrate.mistakes import differing, mistakes
from jetsel.calibrate.neighbourhood import nearest_in_other_folds
from jetsel.calibrate.planning import make_plan
from jetsel.calibrate.record import Loaded
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import Run, TimeFeatures, replay_all
from jetsel.calibrate.results import Judge
from jetsel.policies.calibration import Calibration
from jetsel.policies.catalogue import CRITERIA, catalogue
from jetsel.policies.kind import Plan
from jetsel.policies.registry import no_such
from jetsel.site.family_calibrations import Incumbent
from jetsel.wire import Criterion

FOLDS = 10  # section 4.2
SEED = 2018
TOP = 5  # answers of top5, which tells nothing of fewer classes
MOST_LEFT_OUT = 200  # photographs that are listed with the reason why they are left out

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Order:
    """What the owner asked for. decides: the criterion by which installing is decided.

    in_use: what answers by default now. policy: the one to install, None for the best. names: of the classes, for the
    report. choice_factor: how much slower than here the board's processor makes a choice. machine:
    what the board said of itself when times and energies were measured, empty where that is not known. offers_chain:
    even if it adds nothing, as the family that ships does to show it.
    """

    names: tuple[str, ...]

    goal: Goal = field(default_factory=Goal)
    decides: Criterion = "top1"
    theta_points: float = 0.5
    in_use: Incumbent | None = None
    policy: str | None = None
    choice_factor: float = 1.0
    offers_chain: bool = False
    machine: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The calibration on all photographs, and what was found on held-out ones.

    is_better: whether it is to replace what is in use; always if nobody chose that. is_allowed: whether it keeps every
    limit, without which it is never installed.
    """

    calibration: Calibration
    findings: Findings
    is_better: bool
    is_allowed: bool


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
    has_top5 = len(order.names) > TOP
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
    tried = cross_validate(recording, fold_of, near, plan, goals, identity, progress)
    progress("fitting on all photographs", 0, 1)
    draft = msgspec.structs.replace(_fit_on_all(recording, plan, tried, identity), labels_from=loaded.labels_from)
    judges = {
        criterion: Judge(recording, criterion, features_ms, order.choice_factor, loaded.times.energy_reason)
        for criterion in CRITERIA
    }
    comparisons: dict[str, Comparison] = {
        criterion: compared(judge, tried[criterion], draft, lift if criterion == order.decides else None)
        for criterion, judge in judges.items()
        if criterion != "top5" or has_top5
    }
    # A chain that adds nothing stands in the report, and is not offered: each of its answers would pay for features.
    withheld = () if lift.offered else ("chain",)
    judge = judges[order.decides]
    in_use = None if order.in_use is None else _run_of(order.in_use, judge, tried[order.decides])
    incumbent = judge.outcomes(in_use[1]) if in_use and order.in_use and order.in_use.is_chosen else None
    winners = {
        criterion: _winner(
            _without(tried[criterion], withheld),
            judges[criterion],
            goals[criterion],
            incumbent if criterion == order.decides else None,
        )
        for criterion in CRITERIA
    }
    reference = winners[order.decides].reference
    if order.policy is not None:
        winners[order.decides] = _named(order.policy, tried[order.decides], judge, reference)
    if not has_top5:
        winners["top5"] = winners["top1"]
    winner = winners[order.decides]
    rival, rival_run = in_use or (reference, tried[order.decides].runs[reference])
    is_better, verdict = _verdict(order, loaded, winner, rival, judge.outcomes(rival_run))
    calibration = msgspec.structs.replace(
        draft,
        parts={name: part for name, part in draft.parts.items() if name not in withheld},
        default_policy={criterion: one.name for criterion, one in winners.items()},
        because=verdict,
        figures={criterion: _figures(comparison) for criterion, comparison in comparisons.items()},
        rival=rival,
        energies_half_mj={} if loaded.times.energies is None else dict(loaded.times.energies.half_width_mj),
        energy_reason=loaded.times.energy_reason,
        chooser_energy_mj=comparisons[order.decides].chain.chooser_mj or None,
        machine=dict(order.machine),
        expected=expected(recording, tried["top1"].runs[winners["top1"].name], draft),
    )
    runs, temperatures = tried["top1"].runs, draft.temperatures
    findings = msgspec.structs.replace(
        _findings(loaded, order, calibration, comparisons, differing(recording, runs, order.names, temperatures)),
        mistakes=mistakes(recording, runs, winners["top1"].name, order.names, temperatures),
        current=None if order.in_use is None else judge.result(rival, rival_run),
        is_allowed=order.goal.keeps(winner.outcomes),
    )
    return Calibrated(calibration, findings, is_better, findings.is_allowed)


def check_top5(classes: int) -> None:
    """Raise CalibrationError for a family of so few classes that top5 says nothing of it."""
    if classes <= TOP:
        raise CalibrationError(f"--criterion top5: of {classes} classes any is among the first five")


def _findings(
    loaded: Loaded,
    order: Order,
    calibration: Calibration,
    comparisons: dict[str, Comparison],
    others: ImageSample,
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
    """The policy to install for one criterion, what it gives, and the single model that it was judged by.

    said: of another one that comes nearest to taking that model's place, and why it does not; None if one does.
    """

    name: str
    outcomes: Outcomes
    reference: str
    said: str | None = None


def _winner(tried: CrossValidated, judge: Judge, goal: Goal, incumbent: Outcomes | None) -> _Winner:
    """The policy that serves the goal best on held-out images.

    Without a limit that is the best trade for the incumbent, whether or not it may replace it. Without an incumbent it
    is the best trade for the reference among the single models, or that model if nothing may replace it.
    """
    runs = {name: run for name, run in tried.runs.items() if name.startswith("single:") or judge.always(run) is None}
    outcomes = {name: judge.outcomes(run) for name, run in runs.items()}
    singles = {name: outcomes[name] for name in outcomes if name.startswith("single:")}
    if goal.is_limited or goal.min_accuracy is not None:
        best = singles[f"single:{judge.best_single}"]
        reference = list(singles)[goal.best(list(singles.values()), best)]
        name = list(outcomes)[goal.best(list(outcomes.values()), best)]
        if goal.is_limited or goal.compare(outcomes[name], outcomes[reference])[0]:
            return _Winner(name, outcomes[name], reference)
    else:
        reference = list(singles)[goal.reference(list(singles.values()))]
        against = outcomes[reference] if incumbent is None else incumbent
        chosen = goal.choose(outcomes, against)
        if chosen is None and incumbent is not None:  # the owner may still take the best trade, with --force
            chosen = max(outcomes, key=lambda name: goal.worth(outcomes[name], against))
        if chosen is not None:
            return _Winner(chosen, outcomes[chosen], reference)
    rival = outcomes[reference]
    others = {name: goal.worth(one, rival) for name, one in outcomes.items() if name != reference}
    if not others:
        return _Winner(reference, rival, reference)
    nearest = max(others, key=others.__getitem__)
    said = f"{nearest}: {goal.compare(outcomes[nearest], rival)[1]}"
    return _Winner(reference, rival, reference, said)


def _without(tried: CrossValidated, names: Sequence[str]) -> CrossValidated:
    """The same less what these policies gave."""
    return replace(tried, runs={name: run for name, run in tried.runs.items() if name not in names})


def _named(name: str, tried: CrossValidated, judge: Judge, reference: str) -> _Winner:
    """The policy that the owner asks for; raises CalibrationError where nothing was fitted for one of this name."""
    if name not in tried.runs:
        raise CalibrationError(f"--policy: there is {no_such(name, tried.runs)}")
    return _Winner(name, judge.outcomes(tried.runs[name]), reference)


def _run_of(in_use: Incumbent, judge: Judge, tried: CrossValidated) -> tuple[str, Run]:
    """What is in use, by name, and what it gives on these photographs."""
    name, calibration = in_use.policy, in_use.calibration
    if calibration is None:
        return name, tried.runs[name]
    recording = judge.recording
    policy = catalogue(recording.models, calibration)[judge.criterion][name]
    rows = range(len(recording.classes))
    run = replay_all(policy, recording, rows, judge.criterion, calibration.temperatures, recording.models[-1])
    return f"the {name} of {calibration.created}", run


def _verdict(order: Order, loaded: Loaded, winner: _Winner, rival: str, outcomes: Outcomes) -> tuple[bool, str]:
    """Whether the winner is to be installed, and the sentence that says why and on which images."""
    under = f"{order.decides}, on images held out"
    if loaded.learned:
        learned = f"{100 * loaded.learned:.0f} %"
        under = f"{order.decides}, on images of which the models learned {learned}: all looks too accurate"
    if loaded.labels_from is not None:
        under += f"; right means agreement with {loaded.labels_from}"
    is_chosen = order.in_use is not None and order.in_use.is_chosen
    in_use = f"{rival}, the policy in use" if is_chosen else rival
    if winner.name == rival:
        nearest = "" if winner.said is None else f". The nearest is {winner.said}"
        return not is_chosen, f"no policy is shown to be a better choice than {in_use}{nearest} ({under})"
    is_better, said = order.goal.compare(winner.outcomes, outcomes)
    if order.policy is not None or not is_chosen:
        why = "the best choice" if order.policy is None else "what you asked for"
        return is_better or not is_chosen, f"{winner.name} is {why}. Compared with {in_use}, {said} ({under})"
    word = "a better choice" if is_better else "not shown to be a better choice"
    return is_better, f"{winner.name} is {word} than {in_use}: {said} ({under})"


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
