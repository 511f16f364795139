"""The policy of requests with a deadline: MDInference (Ogden and Guo, section IV), here and with an edge.

It selects among paths here, single models and cascades, by the time that is left (IV-D without its third stage). If an
edge can be asked, a model here and the one that is selected there run at the same time, and the more accurate answer
that is there by the deadline is taken (IV-E), unless a path here is as likely to be right; what section VI asks for, to
duplicate only if it is needed, is `duplicate`.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import structs

from jetsel.base.errors import JetselError
from jetsel.policies.front import CAN_RUN, LATE, Bound, Front, Measure, Point
from jetsel.policies.policy import Decision, Evidence, Outlook, OutOfTime, Policy, Run, Steps

NAME = "deadline"
EDGE = "edge:"  # before the names of the edge's models, which may be those of models here
REDUCED = "@"  # in the names of the edge's models: what follows is the size of the photograph that they are sent
CERTAIN = 2.33  # standard deviations: of a normal time 99 % are below
WORTH = 0.02  # of being right: for less nothing is sent, nor waited for
HANDOVER_MS = 1.0  # from a timer to the model's start
Allow = Literal["never", "low-confidence", "always"]
Duplicate = Literal["always", "when-needed", "never"]


class _Leg(NamedTuple):
    """One model that may run beside another one, and what is known of it now.

    mean_ms, spread_ms: of its time, mean and standard deviation. spare_ms: what that leaves before the deadline.
    """

    model: str
    accuracy: float
    mean_ms: float
    spread_ms: float
    spare_ms: float

    @property
    def likely(self) -> float:
        """How likely its answer is there by the deadline, were times normal."""
        return (1 + math.erf(self.spare_ms / (max(self.spread_ms, 1e-9) * math.sqrt(2)))) / 2


@dataclass(frozen=True)
class Deadline:
    """Chooses by the time that is left.

    front: the paths here. otherwise: the policy for requests without a deadline. singles: the models here of which one
    may run beside the edge's, the most accurate first. edge: the edge's models.
    """

    front: Front
    otherwise: Policy
    singles: Front
    edge: Front
    allow: Allow
    duplicate: Duplicate
    name: str = NAME
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model here that it may run; those of the edge come and go."""
        return self.front.models

    @property
    def first(self) -> tuple[str, ...]:
        """Any of them may be the only one."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose a path for the time that is left, here or both here and there."""
        outlook = photo.outlook
        if outlook is None:
            return (yield from self.otherwise(photo))
        path = self.path_here(outlook)
        if outlook.network_ms is None or self.allow == "never":
            return (yield from self._here(path, photo, outlook))
        near = self._single(outlook)
        point = self.model_away(outlook, 0.0 if near is None else near.accuracy)
        if point is None:
            return (yield from self._here(path, photo, outlook))
        away = _leg(point, outlook)
        if near is None:
            (prediction,) = yield Run((away.model,), "no model here can run", "deadline")
            return Decision(prediction, f"{away.model} answered in time")
        together = away.likely * away.accuracy + (1 - away.likely) * near.accuracy
        if path.known_accuracy >= together - WORTH:
            return (yield from self._here(path, photo, outlook))
        has_time = away.spare_ms - near.mean_ms - near.spread_ms >= CERTAIN * away.spread_ms
        if self.allow == "low-confidence" or (self.duplicate == "when-needed" and has_time):
            return (yield from self._here_first(near, away))
        is_certain = self.duplicate != "always" and away.spare_ms >= CERTAIN * away.spread_ms
        if self.duplicate == "never" and not is_certain:
            return (yield from self._here(path, photo, outlook))
        held_ms = near.mean_ms + CERTAIN * near.spread_ms + HANDOVER_MS
        return (yield from self._together(near, away, held_ms if is_certain else None))

    # The ways.

    @staticmethod
    def _here(path: Point, photo: Evidence, outlook: Outlook) -> Steps:
        """Take the path that is selected here."""
        decision = yield from path.policy(photo)
        why = f"{path.policy.name} is expected within {outlook.budget_ms:.0f} ms; {decision.because}"
        return structs.replace(decision, because=why, operating_point=path.policy.name)

    @staticmethod
    def _together(near: _Leg, away: _Leg, held_ms: float | None) -> Steps:
        """Run both. held_ms: the one here only if nothing has come so long before the deadline."""
        because = f"{away.model} {'may come late' if held_ms is None else 'is nearly certain to come'}"
        predictions = yield Run((near.model, away.model), because, "deadline", held_ms)
        return Decision(predictions[-1], f"{predictions[-1].model} gave the best answer before the deadline")

    @staticmethod
    def _here_first(near: _Leg, away: _Leg) -> Steps:
        """Ask the edge if the answer here is less likely to be right than the edge's."""
        (prediction,) = yield Run((near.model,), f"{away.model} runs next if this answer is not sure")
        if prediction.confidence >= away.accuracy:
            reached = f"the confidence of {near.model} reaches the accuracy of {away.model}"
            return Decision(prediction, f"{reached}: {prediction.confidence:.2f}")
        best = prediction
        with contextlib.suppress(JetselError, OutOfTime):
            (best,) = yield Run((away.model,), f"{near.model} was not sure: {prediction.confidence:.2f}", "deadline")
        return Decision(best, f"{best.model} gave the best answer before the deadline")

    # What they choose by.

    def path_here(self, outlook: Outlook) -> Point:
        """Select among the paths here."""
        return self.front.select_now(outlook)

    def model_away(self, outlook: Outlook, least: float) -> Point | None:
        """Select the edge's model that adds most to an accuracy of `least`, None if none can be asked."""

        def gain(point: Point, outlook: Outlook) -> float:
            leg = _leg(point, outlook)
            return leg.likely * (leg.accuracy - least)

        chosen = self.edge.select(outlook, (CAN_RUN,), (Measure("accuracy", "", gain, is_gain=True),))
        return None if chosen is None else chosen.point

    def _single(self, outlook: Outlook) -> _Leg | None:
        """The model here that runs beside the edge: the most accurate that keeps the deadline, else the fastest.

        Section IV-E takes the fastest. If another keeps the deadline, too, that one is right more often.
        """
        chosen = self.singles.select(outlook, (Bound(LATE, outlook.budget_ms - HANDOVER_MS),))
        chosen = chosen or self.singles.select(outlook, (CAN_RUN,), (LATE,))
        return None if chosen is None else _leg(chosen.point, outlook)


def _leg(point: Point, outlook: Outlook) -> _Leg:
    """Return what is known of a point that can run now."""
    times_ms = point.times_ms(outlook)
    assert times_ms is not None
    return _Leg(point.policy.models[-1], point.known_accuracy, *times_ms, outlook.budget_ms - times_ms[0])
