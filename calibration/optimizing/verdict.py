"""Whether a cheaper model earns its place: candidates beside the model they come from, and a calibration with them.

Everything is judged on images that no candidate has learned from; what policies gain, by cross-validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from calibration.measures import mean_interval
from calibration.papers.taylor.algorithm1 import select_models
from calibration.starter.calibrate import of_models
from jetsel.calibrate.calibrating import Calibrated
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.judge.findings import Interval
from jetsel.calibrate.judge.metrics import share_interval, undominated
from jetsel.calibrate.record.recording import Recording

Compare = Callable[[Sequence[str]], Calibrated]
"""Fits and compares every policy over these models, by cross-validation, as `jetsel calibrate` does."""


class Judged(Struct, frozen=True):
    """One model on the images held out.

    drop: points of accuracy under the parent's, with the interval of a paired difference. agreement: the share of the
    parent's answers that it gives. left_out: why it may not enter, None if it may. in_front: right more often than
    each faster model by more than the noise; in_algorithm_1: the chain has it; in_policy: the best policy runs it.
    """

    name: str
    top1: float
    top1_interval: Interval
    drop: float
    drop_interval: Interval
    agreement: float
    mean_ms: float
    left_out: str | None = None
    in_front: bool = False
    in_algorithm_1: bool = False
    in_policy: bool = False


class Trade(Struct, frozen=True):
    """The best policy without the candidates, and with them, by the decision of `jetsel calibrate`.

    is_better: whether the second would replace the first; reason: in words. models: those that the second runs.
    """

    before: str
    after: str
    before_top1: float
    after_top1: float
    before_ms: float
    after_ms: float
    is_better: bool
    reason: str
    models: list[str]


class Verdict(Struct, frozen=True):
    """What candidates came to. photographs: held out; served: the family as it is; the models cheapest first.

    trade: None if there is no candidate that may enter.
    """

    parent: str
    photographs: int
    served: list[str]
    models: list[Judged]
    algorithm_1: list[str]
    front: list[tuple[float, float, str]]
    trade: Trade | None

    @property
    def entered(self) -> list[str]:
        """The candidates that the front, Algorithm 1 or the best policy has."""
        new = [one for one in self.models if one.name not in self.served]
        return [one.name for one in new if one.in_front or one.in_algorithm_1 or one.in_policy]


def judged(
    recording: Recording,
    parent: str,
    served: Sequence[str],
    max_drop: float,
    theta_points: float,
    refused: Mapping[str, str],
    compare: Compare,
) -> Verdict:
    """Judge every model of the recording that is not `served`.

    max_drop: points under the parent that a candidate may lose. refused: candidates that are left out, and why. Raises
    CalibrationError if the images are too few.
    """
    models = [_judged(recording, name, parent) for name in recording.models]
    reasons = {one.name: refused.get(one.name) or _too_far(one, parent, max_drop) for one in models}
    more = [name for name in recording.models if name not in served and reasons[name] is None]
    beside = of_models(recording, [*served, *more])
    links, _ = select_models(beside.right, beside.costs(), beside.models, theta_points)
    ahead = _front(beside, beside.models)
    names = [name for _, _, name in ahead]  # a model that another one beats in time and accuracy only takes time here
    trade = _trade(compare([name for _, _, name in _front(beside, served)]), compare(names)) if more else None
    placed = [
        replace(
            one,
            left_out=None if one.name in served else reasons[one.name],
            in_front=one.name in beside.models and _is_ahead(beside, one.name),
            in_algorithm_1=one.name in links,
            in_policy=trade is not None and trade.is_better and one.name in trade.models,
        )
        for one in sorted(models, key=lambda one: one.mean_ms)
    ]
    return Verdict(parent, len(recording.classes), list(served), placed, list(links), ahead, trade)


def _front(recording: Recording, models: Sequence[str]) -> list[tuple[float, float, str]]:
    """Return mean ms, share right and name of the models that none beats in both, fastest first."""
    shares = dict(zip(recording.models, recording.right.mean(axis=0).tolist(), strict=True))
    return undominated((recording.costs_ms[name], shares[name], name) for name in models)


def _trade(before: Calibrated, after: Calibrated) -> Trade:
    is_better, reason = Goal().compare(after.outcomes, before.outcomes)
    names = [one.calibration.default_policy for one in (before, after)]
    ours, theirs = (one.findings.comparison.policies[name] for one, name in zip((before, after), names, strict=True))
    return Trade(
        *names,
        ours.top1,
        theirs.top1,
        ours.time_ms.mean,
        theirs.time_ms.mean,
        is_better,
        reason,
        [name for name, share in theirs.runs.items() if share > 0],
    )


def _judged(recording: Recording, name: str, parent: str) -> Judged:
    column, theirs = recording.models.index(name), recording.models.index(parent)
    right = recording.right
    answers = recording.logits.argmax(axis=2)
    lost = 100 * (right[:, theirs].astype(float) - right[:, column])
    return Judged(
        name,
        float(right[:, column].mean()),
        share_interval(right[:, column], recording.groups),
        float(lost.mean()),
        mean_interval(lost),
        float((answers[column] == answers[theirs]).mean()),
        recording.costs_ms[name],
    )


def _is_ahead(recording: Recording, name: str) -> bool:
    """Whether it is right more often than each faster model, by more than the noise of a paired difference."""
    right, place = recording.right.astype(float), recording.models.index(name)
    return all(mean_interval(right[:, place] - right[:, faster]).low > 0 for faster in range(place))


def _too_far(one: Judged, parent: str, max_drop: float) -> str | None:
    if one.drop <= max_drop:
        return None
    return f"its accuracy is {one.drop:.1f} points below {parent}'s; --max-drop allows {max_drop:g}"
