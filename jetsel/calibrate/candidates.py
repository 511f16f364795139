"""Whether a cheaper rung earns its place: candidates beside the model they come from, and policies with and without.

Everything is judged on photographs that no candidate has learned from; what policies gain, by cross-validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from jetsel.calibrate.findings import Interval
from jetsel.calibrate.folds import assign_folds
from jetsel.calibrate.gains import Gain, front, gains
from jetsel.calibrate.metrics import mean_interval, share_interval
from jetsel.calibrate.recording import Recording
from jetsel.premodel import select_models

FOLDS, SEED = 10, 2018


class Judged(Struct, frozen=True):
    """One model on the photographs held out.

    drop: points of accuracy under the parent's, with the interval of a paired difference. agreement: the share of the
    parent's answers that it gives. left_out: why it may not enter, None where it may. in_front: right more often than
    each faster model by more than the noise; in_algorithm_1, in_cascade: the chain, or a best cascade, has it.
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
    in_cascade: bool = False


class Verdict(Struct, frozen=True):
    """What candidates came to. photographs: held out; served: the family as it is; the models cheapest first."""

    parent: str
    photographs: int
    served: list[str]
    models: list[Judged]
    algorithm_1: list[str]
    front: list[tuple[float, float, str]]
    gains: list[Gain]

    @property
    def entered(self) -> list[str]:
        """The candidates that the front, Algorithm 1 or a cascade wants."""
        new = [one for one in self.models if one.name not in self.served]
        return [one.name for one in new if one.in_front or one.in_algorithm_1 or one.in_cascade]


def judged(
    recording: Recording,
    parent: str,
    served: Sequence[str],
    max_drop: float,
    theta_points: float,
    refused: Mapping[str, str],
) -> Verdict:
    """Judge every model of the recording that is not `served`.

    max_drop: points under the parent that a candidate may lose. refused: candidates that are left out, and why. Raises
    CalibrationError where the photographs are too few.
    """
    groups = np.arange(len(recording.classes)) if recording.groups is None else recording.groups
    fold_of = assign_folds(groups, FOLDS, SEED)
    models = [_judged(recording, name, parent) for name in recording.models]
    reasons = {one.name: refused.get(one.name) or _too_far(one, parent, max_drop) for one in models}
    more = [name for name in recording.models if name not in served and reasons[name] is None]
    beside = recording.of_models([*served, *more])
    links, _ = select_models(beside.right("top1"), beside.costs(), beside.models, theta_points)
    found, compared = front(beside, beside.models), gains(recording, served, more, fold_of)
    rungs = {rung for gain in compared for rung in gain.rungs}
    placed = [
        replace(
            one,
            left_out=None if one.name in served else reasons[one.name],
            in_front=one.name in beside.models and _is_ahead(beside, one.name),
            in_algorithm_1=one.name in links,
            in_cascade=one.name in rungs,
        )
        for one in sorted(models, key=lambda one: one.mean_ms)
    ]
    return Verdict(parent, len(recording.classes), list(served), placed, list(links), found, compared)


def _judged(recording: Recording, name: str, parent: str) -> Judged:
    column, theirs = recording.models.index(name), recording.models.index(parent)
    right = recording.right("top1")
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
    right, place = recording.right("top1").astype(float), recording.models.index(name)
    return all(mean_interval(right[:, place] - right[:, faster]).low > 0 for faster in range(place))


def _too_far(one: Judged, parent: str, max_drop: float) -> str | None:
    if one.drop <= max_drop:
        return None
    return f"right on {one.drop:.1f} points less than {parent}, where --max-drop allows {max_drop:g}"
