"""Which policy is the best choice on held-out images, and whether it replaces what is in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.fit.goal import Goal, Outcomes
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.record.recording import LoadedRecording
from jetsel.calibrate.record.replay import PolicyReplay, replay_all
from jetsel.policies.kind import Kind
from jetsel.policies.registry import USUAL, catalogue, no_such
from jetsel.site.site import Incumbent

Runs = Mapping[str, PolicyReplay]
Points = Mapping[str, Sequence[Outcomes]]


@dataclass(frozen=True, eq=False)
class InstallRequest:
    """What the owner asked for.

    in_use: what answers by default now. policy: the one to install, None for the best. names: of the classes, for the
    report. choice_factor: how much slower than here the board's processor makes a choice. machine: what the board said
    of itself when times and energies were measured, empty if that is not known. wrong_at_most: what the family's
    requests ask for unless they say; None: nothing. kinds: the policies that are fitted. force: install what may lose
    too much accuracy; limits are kept in any case. command: what was run, for the report.
    """

    names: tuple[str, ...] = ()
    goal: Goal = field(default_factory=Goal)
    in_use: Incumbent | None = None
    policy: str | None = None
    choice_factor: float = 1.0
    machine: Mapping[str, Any] = field(default_factory=dict)
    wrong_at_most: float | None = None
    kinds: Sequence[Kind] = USUAL
    force: bool = False
    command: str = "jetsel calibrate IMAGES"

    @property
    def is_firm(self) -> bool:
        """Whether the calibration is to be installed even if it is not better."""
        return self.force or self.policy is not None or self.wrong_at_most is not None


@dataclass(frozen=True, eq=False)
class InstallDecision:
    """What is to be installed, and why.

    winner: the policy. outcomes: what it gives, held out.
    rival, rival_run: what it was compared with. is_better: whether it is to replace that; always if nobody chose it.
    """

    winner: str
    outcomes: Outcomes
    rival: str
    rival_run: PolicyReplay
    is_better: bool
    verdict: str


def decide(order: InstallRequest, loaded: LoadedRecording, runs: Runs, points: Points, judge: Judge) -> InstallDecision:
    """Choose the default policy of those that were tried, and compare it with what is in use.

    points: the operating points of those policies that have several. Raises CalibrationError if the owner asks for a
    policy that is not there.
    """
    in_use = None if order.in_use is None else _run_of(order.in_use, judge, runs)
    winner, reference, nearest = _winner(runs, points, judge, order.goal)
    if order.policy is not None:
        if order.policy not in runs:
            raise CalibrationError(f"--policy: the family has {no_such(order.policy, runs)}")
        winner, nearest = order.policy, None
    outcomes = judge.outcomes(runs[winner])
    rival, rival_run = in_use or (reference, runs[reference])
    if winner == rival:
        is_better, reason = False, "" if nearest is None else f". The nearest is {nearest}"
    else:
        is_better, reason = order.goal.compare(outcomes, judge.outcomes(rival_run))
    is_chosen = order.in_use is not None and order.in_use.is_chosen
    verdict = _verdict(order, winner, rival, reason, is_better=is_better, is_chosen=is_chosen)
    return InstallDecision(
        winner, outcomes, rival, rival_run, is_better or not is_chosen, f"{verdict} ({_images_in_words(loaded)})"
    )


def _winner(runs: Runs, points: Points, judge: Judge, goal: Goal) -> tuple[str, str, str | None]:
    """Return the policy that serves the goal best on held-out images, and the single model that it was judged by.

    If nothing may replace that model they are the same, and the third is what comes nearest to it, and why it may not.
    A policy that always asks one model is that model.
    """
    names = {name: f"single:{judge.always(run)}" if judge.always(run) else name for name, run in runs.items()}
    outcomes = {name: judge.outcomes(runs[name]) for name in dict.fromkeys(names.values())}
    singles = {name: one for name, one in outcomes.items() if name.startswith("single:")}
    if goal.is_limited or goal.min_accuracy is not None:
        reference = list(singles)[goal.within_limits(list(singles.values()))]
        chosen = list(outcomes)[goal.within_limits(list(outcomes.values()))]
        able = [chosen] if goal.is_limited or goal.compare(outcomes[chosen], outcomes[reference])[0] else []
    else:
        reference = list(singles)[goal.reference(list(singles.values()))]
        choosing = {name: judge.outcomes(run) for name, run in runs.items() if not name.startswith("single:")}
        rival = outcomes[reference]
        able = [names[name] for name, one in choosing.items() if _may_answer(one, rival, points.get(name), goal)]
    best = min(able, key=lambda name: outcomes[name].cost(goal.objective).mean(), default=None)
    if best is not None:
        return best, reference, None
    others = [name for name in outcomes if name not in singles]
    if not others:
        return reference, reference, None
    reason = f"{others[0]}: {goal.compare(outcomes[others[0]], outcomes[reference])[1]}"
    return reference, reference, f"{reason}. To install it all the same: --policy {others[0]}"


def _may_answer(policy: Outcomes, rival: Outcomes, points: Sequence[Outcomes] | None, goal: Goal) -> bool:
    """Whether a policy may answer in place of the reference: by the choice among its points, or compared with it."""
    if points is not None and goal.cheapest_as_accurate(points, rival) is not None:
        return True
    return goal.compare(policy, rival)[0]


def _run_of(in_use: Incumbent, judge: Judge, runs: Runs) -> tuple[str, PolicyReplay]:
    """What is in use, by name, and what it gives on these photographs."""
    name, calibration = in_use.policy, in_use.calibration
    if calibration is None:
        return name, runs[name]
    recording = judge.recording
    policy = catalogue(recording.models, calibration)[name]
    rows = range(len(recording.classes))
    run = replay_all(policy, recording, rows, calibration.temperatures, recording.models[-1])
    return f"the {name} of {calibration.created}", run


def _verdict(order: InstallRequest, winner: str, rival: str, reason: str, *, is_better: bool, is_chosen: bool) -> str:
    """Say why the winner is installed or not. reason: how it compares. is_chosen: whether the owner chose the rival."""
    in_use = f"{rival}, the policy in use" if is_chosen else rival
    if winner == rival and is_chosen:
        return f"no policy is shown to be a better choice than {in_use}{reason}"
    if winner == rival:
        return f"no policy is proven to be a better choice yet, so {in_use} goes on answering{reason}"
    if order.policy is not None or not is_chosen:
        why = "the best choice" if order.policy is None else "what you asked for"
        return f"{winner} is {why}. Compared with {in_use}, {reason}"
    word = "a better choice" if is_better else "not shown to be a better choice"
    return f"{winner} is {word} than {in_use}: {reason}"


def _images_in_words(loaded: LoadedRecording) -> str:
    """Say on which images policies were compared, and what right means there."""
    under = "on held-out images"
    if loaded.learned:
        trained = f"on images of which {loaded.learned_share} were used to train the models"
        effect = "all accuracies are too high" if loaded.learned >= 0.01 else "accuracies are a little too high"
        under = f"{trained}: {effect}"
    return under if loaded.labels_from is None else f"{under}; right means agreement with {loaded.labels_from}"
