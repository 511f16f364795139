"""From a recording to a calibration, its report, and whether it should be installed."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from jetsel.calibrate.assemble import Identity, assemble
from jetsel.calibrate.comparing import compared, differing
from jetsel.calibrate.cross_validation import CrossValidated, best_single, cross_validate, trees_of
from jetsel.calibrate.findings import Comparison, Findings
from jetsel.calibrate.folds import deal
from jetsel.calibrate.goal import Goal, Outcomes
from jetsel.calibrate.held_out import fit_temperatures, learn
from jetsel.calibrate.neighbourhood import look_around
from jetsel.calibrate.planning import Planned, TimeFeatures, make_plan
from jetsel.calibrate.record import Loaded
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import replay_all
from jetsel.calibrate.results import Judge
from jetsel.calibrate.studies import Pictures, Scene
from jetsel.premodel import Calibration
from jetsel.selection.catalogue import CRITERIA, catalogue
from jetsel.wire import Criterion

FOLDS = 10  # section 4.2
SEED = 2018

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Order:
    """What the owner asked for. decides: the criterion by which installing is decided.

    installed: the owner's calibration in use, None where there is none or it was made for other models. names: of the
    classes, for the report. choice_factor: how much slower than here the board's processor makes a choice.
    """

    names: tuple[str, ...]

    goal: Goal = field(default_factory=Goal)
    decides: Criterion = "top1"
    theta_points: float = 0.5
    installed: Calibration | None = None
    labels_from: str | None = None
    choice_factor: float = 1.0


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
    pictures: Pictures | None,
    progress: Progress,
) -> Calibrated:
    """Fit and compare everything on a recording, and judge the winner against the rival on held-out photographs.

    Raises CalibrationError where the photographs are too few.
    """
    recording = loaded.recording
    groups = np.arange(len(recording.classes)) if recording.groups is None else recording.groups
    fold_of = deal(groups, FOLDS, SEED)
    progress("choosing features", 0, 1)
    planned = make_plan(recording, fold_of, order.theta_points, features_ms)
    columns = [recording.feature_names.index(name) for name in planned.plan.features]
    near = look_around(recording.features[:, columns], fold_of, planned.plan.k)
    tried = cross_validate(recording, fold_of, near, planned.plan, order.goal, identity, progress)
    judges = {
        criterion: Judge(recording, criterion, fold_of, planned.plan.features_ms, best_single(recording, criterion)[0])
        for criterion in CRITERIA
    }
    progress("fitting on all photographs", 0, 1)
    draft = _on_all(recording, planned, tried, identity)
    winners = {criterion: _winner(tried[criterion], judges[criterion], order.goal) for criterion in CRITERIA}
    rival, rival_outcomes = _rival(order, judges[order.decides], tried[order.decides])
    winner = winners[order.decides]
    is_better, said = order.goal.compare(
        judges[order.decides].outcomes(tried[order.decides].runs[winner]), rival_outcomes
    )
    verdict = f"{winner} beside {rival}, under {order.decides}, on photographs held out: {said}"
    calibration = msgspec.structs.replace(
        draft,
        default_policy=dict(winners),
        because=verdict,
        figures=_figures(tried, judges),
        labels_from=order.labels_from,
        objective=order.goal.objective,
        rival=rival,
    )
    comparisons: dict[str, Comparison] = {}
    for criterion in CRITERIA:
        progress(f"studying {criterion}", 0, 1)
        runs = tried[criterion].runs
        chain_ms = runs["chain"].choice_ms * order.choice_factor
        scene = Scene(recording, criterion, near, fold_of, planned.plan, chain_ms)
        comparisons[criterion] = compared(
            scene, judges[criterion], tried[criterion], calibration, planned.k_accuracy, pictures
        )
    findings = Findings(
        family=loaded.family,
        created=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        photographs=len(recording.classes),
        skipped=dict(loaded.skipped),
        labels_from=order.labels_from,
        objective=order.goal.objective,
        conditions=dict(loaded.times.conditions),
        noisy=loaded.times.noisy,
        costs_ms=dict(recording.costs_ms),
        models_sha256=dict(loaded.models_sha256),
        winner=winner,
        rival=rival,
        installed=False,
        verdict=verdict,
        features=planned.study,
        comparisons=comparisons,
        differing=differing(recording, tried["top1"].runs, order.names),
    )
    return Calibrated(calibration, findings, is_better)


def _on_all(
    recording: Recording, planned: Planned, tried: Mapping[Criterion, CrossValidated], identity: Identity
) -> Calibration:
    """Learn once more, from every photograph, at the operating points that cross-validation chose."""
    temperatures = fit_temperatures(recording)
    learned = {
        criterion: learn(recording, criterion, planned.plan, temperatures, trees_of(recording, criterion, planned.plan))
        for criterion in CRITERIA
    }
    places = {criterion: tried[criterion].places for criterion in CRITERIA}
    soundness = {criterion: tried[criterion].soundness for criterion in CRITERIA}
    return assemble(identity, learned, places, soundness)


def _winner(tried: CrossValidated, judge: Judge, goal: Goal) -> str:
    """The policy that serves the goal best on held-out photographs; the best single model where none is better."""
    names = list(tried.runs)
    outcomes = [judge.outcomes(tried.runs[name]) for name in names]
    single = f"single:{judge.best_single}"
    rival = judge.outcomes(tried.runs[single])
    best = names[goal.best(outcomes, rival)]
    return best if goal.compare(judge.outcomes(tried.runs[best]), rival)[0] else single


def _rival(order: Order, judge: Judge, tried: CrossValidated) -> tuple[str, Outcomes]:
    """What the winner must beat: the installed policy, or the best single model where none is installed."""
    if order.installed is None:
        name = f"single:{judge.best_single}"
        return name, judge.outcomes(tried.runs[name])
    name = order.installed.default_policy[order.decides]
    recording = judge.recording
    policy = catalogue(recording.models, order.installed, {})[order.decides][name]
    rows = range(len(recording.classes))
    run = replay_all(policy, recording, rows, order.decides, order.installed.temperatures, recording.models[-1])
    return f"the installed {name} of {order.installed.created}", judge.outcomes(run)


def _figures(tried: Mapping[Criterion, CrossValidated], judges: Mapping[Criterion, Judge]) -> dict[str, object]:
    """The gist of the comparison, for the artefact: accuracy, time and share of each model by policy."""
    figures: dict[str, object] = {}
    for criterion, one in tried.items():
        results = {name: judges[criterion].result(name, run) for name, run in one.runs.items()}
        figures[criterion] = {
            name: {"top1": result.top1, "top5": result.top5, "mean_ms": result.time_ms.mean, "runs": result.runs}
            for name, result in results.items()
        }
    return figures
