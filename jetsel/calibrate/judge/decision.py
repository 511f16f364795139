"""Choose the best policy on held-out images, and decide whether it replaces the policy in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.record.recording import LoadedRecording
from jetsel.calibrate.record.replay import Outcomes, PolicyReplay, replay_all
from jetsel.policies.kind import Kind
from jetsel.policies.registry import USUAL, catalogue, no_such
from jetsel.site.site import Incumbent

Runs = Mapping[str, PolicyReplay]  # policy -> its held-out replay
Points = Mapping[str, Sequence[Outcomes]]  # policy -> held-out results of its operating points, sorted by cost


@dataclass(frozen=True, eq=False)
class InstallRequest:
    """The owner's request for a calibration."""

    goal: Goal = field(default_factory=Goal)
    in_use: Incumbent | None = None  # the default policy today, None without one
    policy: str | None = None  # the one to install, None for the best
    choice_factor: float = 1.0  # how much slower the board makes a choice than this machine
    machine: Mapping[str, Any] = field(default_factory=dict)  # facts of the measured machine, if known
    wrong_at_most: float | None = None  # error rate to guarantee by default, None for none
    kinds: Sequence[Kind] = USUAL  # the policies to fit
    force: bool = False  # install even if too much accuracy may be lost; limits still apply
    command: str = "jetsel calibrate IMAGES"  # for the report

    @property
    def is_firm(self) -> bool:
        """Whether to install the calibration even if it is not better."""
        return self.force or self.policy is not None or self.wrong_at_most is not None


@dataclass(frozen=True, eq=False)
class InstallDecision:
    """Which policy to install, and why."""

    winner: str  # the policy for requests that name none
    outcomes: Outcomes  # the winner's, on held-out images
    rival: str  # the policy that it was compared with
    rival_run: PolicyReplay
    is_better: bool  # whether the winner replaces the rival; True if the owner did not choose the rival
    verdict: str  # the reason, one sentence


def decide(
    request: InstallRequest, loaded: LoadedRecording, runs: Runs, points: Points, judge: Judge
) -> InstallDecision:
    """Choose the default policy, and compare it with the policy in use.

    runs: the policies to choose from. points: of policies that have several. Raises CalibrationError if the owner asks
    for a policy that is not in `runs`.
    """
    is_chosen = request.in_use is not None and request.in_use.is_chosen
    winner, reference, nearest = _choose_winner(runs, points, judge, request.goal)
    if request.policy is not None:
        if request.policy not in runs:
            raise CalibrationError(f"--policy: the family has {no_such(request.policy, runs)}")
        winner, nearest = request.policy, None
    outcomes = judge.outcomes(runs[winner])
    rival, rival_run = (
        (reference, runs[reference]) if request.in_use is None else _replay_in_use(request.in_use, judge, runs)
    )
    if winner == rival:
        is_better, reason = False, "" if nearest is None else f". The nearest is {nearest}"
    else:
        is_better, reason = request.goal.compare(outcomes, judge.outcomes(rival_run))
    verdict = _verdict(request, winner, rival, reason, is_better=is_better, is_chosen=is_chosen)
    return InstallDecision(
        winner, outcomes, rival, rival_run, is_better or not is_chosen, f"{verdict} ({_images_in_words(loaded)})"
    )


def _choose_winner(runs: Runs, points: Points, judge: Judge, goal: Goal) -> tuple[str, str, str | None]:
    """Return the policy that serves the goal best, the single model that it was compared with, and a remark or None.

    If no policy may replace the single model, the model wins, and the remark says which policy comes nearest and what
    it lacks. A policy that runs the same model on every image counts as that model.
    """
    names = {name: f"single:{judge.only_model(run)}" if judge.only_model(run) else name for name, run in runs.items()}
    outcomes = {name: judge.outcomes(runs[name]) for name in dict.fromkeys(names.values())}
    singles = {name: policy for name, policy in outcomes.items() if name.startswith("single:")}
    if goal.is_limited or goal.min_accuracy is not None:
        reference = list(singles)[goal.choose_within_limits(list(singles.values()))]
        chosen = list(outcomes)[goal.choose_within_limits(list(outcomes.values()))]
        passed = [chosen] if goal.is_limited or goal.compare(outcomes[chosen], outcomes[reference])[0] else []
    else:
        reference = list(singles)[goal.reference(list(singles.values()))]
        multi = {name: judge.outcomes(run) for name, run in runs.items() if not name.startswith("single:")}
        rival = outcomes[reference]
        passed = [names[name] for name, policy in multi.items() if may_replace(policy, rival, points.get(name), goal)]
    best = min(passed, key=lambda name: outcomes[name].cost(goal.objective).mean(), default=None)
    if best is not None:
        return best, reference, None
    others = [name for name in outcomes if name not in singles]
    if not others:
        return reference, reference, None
    reason = f"{others[0]}: {goal.compare(outcomes[others[0]], outcomes[reference])[1]}"
    return reference, reference, f"{reason}. To install it all the same: --policy {others[0]}"


def may_replace(policy: Outcomes, rival: Outcomes, points: Sequence[Outcomes] | None, goal: Goal) -> bool:
    """Whether a policy may replace a single model: a point of it, or the policy itself, is as accurate."""
    if points is not None and goal.cheapest_as_accurate(points, rival) is not None:
        return True
    return goal.compare(policy, rival)[0]


def _replay_in_use(in_use: Incumbent, judge: Judge, runs: Runs) -> tuple[str, PolicyReplay]:
    """Return the name of the policy in use, and its replay: by its own calibration, or from `runs` if it has none."""
    name, calibration = in_use.policy, in_use.calibration
    if calibration is None:
        return name, runs[name]
    recording = judge.recording
    policy = catalogue(recording.models, calibration)[name]
    run = replay_all(policy, recording, range(len(recording.classes)), calibration.temperatures, recording.models[-1])
    return f"the {name} of {calibration.created}", run


def _verdict(request: InstallRequest, winner: str, rival: str, reason: str, *, is_better: bool, is_chosen: bool) -> str:
    """Return the verdict in words. reason: their comparison. is_chosen: whether the owner chose the rival."""
    in_use = f"{rival}, the policy in use" if is_chosen else rival
    if winner == rival and is_chosen:
        return f"no policy is shown to be a better choice than {in_use}{reason}"
    if winner == rival:
        return f"no policy is proven to be a better choice yet, so {in_use} goes on answering{reason}"
    if request.policy is not None or not is_chosen:
        why = "the best choice" if request.policy is None else "what you asked for"
        return f"{winner} is {why}. Compared with {in_use}, {reason}"
    word = "a better choice" if is_better else "not shown to be a better choice"
    return f"{winner} is {word} than {in_use}: {reason}"


def _images_in_words(loaded: LoadedRecording) -> str:
    """Return, in words, which images policies were compared on, and what "right" means if there are no labels."""
    images = "on held-out images"
    if loaded.learned:
        effect = "all accuracies are too high" if loaded.learned >= 0.01 else "accuracies are a little too high"
        images = f"on images of which {loaded.learned_share} were used to train the models: {effect}"
    return images if loaded.labels_from is None else f"{images}; right means agreement with {loaded.labels_from}"
