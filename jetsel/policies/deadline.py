"""The policy of requests with a deadline: MDInference (Ogden and Guo, section IV), with and without an edge server.

It selects a path on the device (a model or a cascade) by the time left (section IV-D without its third stage). If an
edge server is available, a model here and one there run at the same time, and the more accurate answer that arrives by
the deadline is used (IV-E), unless a path here is as likely to be right. `duplicate` controls whether both run only if
needed, as section VI proposes.
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
EDGE = "edge:"  # prefix of the edge server's models, whose names may equal those of models here
REDUCED = "@"  # in the edge server's model names: the size in px of the images sent to the model follows
CERTAIN = 2.33  # standard deviations; 99 % of normally distributed times are below
WORTH = 0.02  # smallest gain of accuracy that justifies use of the edge server
HANDOVER_MS = 1.0  # from the expiry of a timer to the start of a model
Allow = Literal["never", "low-confidence", "always"]
Duplicate = Literal["always", "when-needed", "never"]


class _Leg(NamedTuple):
    """One of the models that may run side by side, with its current estimates.

    mean_ms, spread_ms: mean and standard deviation of its latency. spare_ms: the time left before the deadline if the
    latency is the mean.
    """

    model: str
    accuracy: float
    mean_ms: float
    spread_ms: float
    spare_ms: float

    @property
    def likely(self) -> float:
        """Probability of an answer by the deadline, if latencies are normally distributed."""
        return (1 + math.erf(self.spare_ms / (max(self.spread_ms, 1e-9) * math.sqrt(2)))) / 2


@dataclass(frozen=True)
class Deadline:
    """Chooses by the time left. front: the paths here. otherwise: the policy of requests without a deadline.

    singles: the models here that may run beside one of the edge server's, the most accurate first. edge: the edge
    server's models.
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
        """Every model here that may run; the edge server's models come and go."""
        return self.front.models

    @property
    def first(self) -> tuple[str, ...]:
        """Every model here, since each may run alone."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose a path here, a model of the edge server, or both, by the time left."""
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

    # How it runs.

    @staticmethod
    def _here(path: Point, photo: Evidence, outlook: Outlook) -> Steps:
        """Follow the path selected here."""
        decision = yield from path.policy(photo)
        why = f"{path.policy.name} is expected within {outlook.budget_ms:.0f} ms; {decision.because}"
        return structs.replace(decision, because=why, operating_point=path.policy.name)

    @staticmethod
    def _together(near: _Leg, away: _Leg, held_ms: float | None) -> Steps:
        """Run both models. held_ms: start the model here only this long before the deadline; None: start it at once."""
        because = f"{away.model} {'may come late' if held_ms is None else 'is nearly certain to come'}"
        predictions = yield Run((near.model, away.model), because, "deadline", held_ms)
        return Decision(predictions[-1], f"{predictions[-1].model} gave the best answer before the deadline")

    @staticmethod
    def _here_first(near: _Leg, away: _Leg) -> Steps:
        """Run the model here; ask the edge server if the confidence is below the accuracy of its model."""
        (prediction,) = yield Run((near.model,), f"{away.model} runs next if this answer is not sure")
        if prediction.confidence >= away.accuracy:
            reached = f"the confidence of {near.model} reaches the accuracy of {away.model}"
            return Decision(prediction, f"{reached}: {prediction.confidence:.2f}")
        best = prediction
        with contextlib.suppress(JetselError, OutOfTime):
            (best,) = yield Run((away.model,), f"{near.model} was not sure: {prediction.confidence:.2f}", "deadline")
        return Decision(best, f"{best.model} gave the best answer before the deadline")

    # How it chooses.

    def path_here(self, outlook: Outlook) -> Point:
        """Select one of the paths here."""
        return self.front.select_now(outlook)

    def model_away(self, outlook: Outlook, least: float) -> Point | None:
        """Select the edge server's model that adds most to the accuracy `least`; None if none is available."""

        def gain(point: Point, outlook: Outlook) -> float:
            leg = _leg(point, outlook)
            return leg.likely * (leg.accuracy - least)

        chosen = self.edge.select(outlook, (CAN_RUN,), (Measure("accuracy", "", gain, is_gain=True),))
        return None if chosen is None else chosen.point

    def _single(self, outlook: Outlook) -> _Leg | None:
        """Select the most accurate model here that keeps the deadline, otherwise the fastest.

        Section IV-E always takes the fastest; a slower one that keeps the deadline is right more often.
        """
        chosen = self.singles.select(outlook, (Bound(LATE, outlook.budget_ms - HANDOVER_MS),))
        chosen = chosen or self.singles.select(outlook, (CAN_RUN,), (LATE,))
        return None if chosen is None else _leg(chosen.point, outlook)


def _leg(point: Point, outlook: Outlook) -> _Leg:
    """Return the estimates of a point that can run now."""
    times_ms = point.times_ms(outlook)
    assert times_ms is not None
    return _Leg(point.policy.models[-1], point.known_accuracy, *times_ms, outlook.budget_ms - times_ms[0])
