"""The operating points of a family, and the one function that selects among them by accuracy, time and energy.

Each point of a front is less accurate and cheaper than the one before it. Under load or a power budget, the daemon
moves along the front instead of answering later. Deadlines and requirements are further bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jetsel.artefact.calibration import Calibration
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.policy import Outlook, Policy


@dataclass(frozen=True)
class Point:
    """An operating point: a policy with its figures on images that it was not fitted on; None if unknown.

    accuracy: share of right answers. calibrated_ms: mean latency. runs: model -> share of the images on which it runs.
    chooser_ms: time for features and choice. energy_mj: mean of the models here, above idle power. is_away: whether the
    last model runs on the edge server, which adds network time and mj_per_kb for each 1,000 bytes. paths: the models of
    each path; if empty, all models of the policy may run in turn.
    """

    policy: Policy
    accuracy: float | None
    calibrated_ms: float | None
    runs: Mapping[str, float]
    chooser_ms: float
    energy_mj: float | None
    is_away: bool = False
    mj_per_kb: float | None = None
    paths: tuple[tuple[str, ...], ...] = ()

    @property
    def known_accuracy(self) -> float:
        """The accuracy of a point that has one."""
        assert self.accuracy is not None
        return self.accuracy

    @property
    def known_ms(self) -> float:
        """The calibrated mean latency of a point that has one."""
        assert self.calibrated_ms is not None
        return self.calibrated_ms

    @cached_property
    def needs(self) -> frozenset[str]:
        """The models that must be available for the calibrated figures to hold."""
        return frozenset((*self.policy.models, *self.runs))

    def uses(self, names: Collection[str]) -> bool:
        """Return whether the names hold this policy or one of its models."""
        return any(name in names for name in (self.policy.name, *self.policy.models))

    def times_ms(self, outlook: Outlook) -> tuple[float, float] | None:
        """Return mean and standard deviation of the latency of the slowest path; None if a model cannot run."""
        if not self.needs <= outlook.models_ms.keys() or (self.is_away and outlook.network_ms is None):
            return None
        beside = [(self.chooser_ms, 0.0)]
        if self.is_away and outlook.network_ms is not None:
            beside.append(outlook.network_ms)
        paths = self.paths or (self.policy.models,)
        return max((_sum_of_times([*map(outlook.models_ms.__getitem__, path), *beside]) for path in paths), key=sum)

    def late_ms(self, outlook: Outlook) -> float | None:
        """Return the latency of a slow answer: mean plus one deviation on the slowest path."""
        times_ms = self.times_ms(outlook)
        return None if times_ms is None else sum(times_ms)

    def mean_ms(self, outlook: Outlook) -> float | None:
        """Return the mean latency here at the models' current speed, alone or in batches; None if one cannot run."""
        if not self.needs <= outlook.models_ms.keys():
            return None
        return self.chooser_ms + sum(share * outlook.image_ms(model) for model, share in self.runs.items())

    def spent_mj(self, outlook: Outlook) -> float | None:
        """Return the mean energy of an answer, with the transfer of this image to the edge server; None if unknown."""
        if not self.is_away or self.energy_mj is None:
            return self.energy_mj
        sent_kb = outlook.traffic_kb.get(self.policy.models[-1])
        return None if sent_kb is None or self.mj_per_kb is None else self.energy_mj + sent_kb * self.mj_per_kb


def _sum_of_times(times: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return mean and standard deviation of the sum of independent times, given as (mean, deviation)."""
    means, deviations = zip(*times, strict=True)
    return float(sum(means)), math.hypot(*deviations)


class Measure(NamedTuple):
    """A figure to compare points by. of: its value for one image now, None if unknown. is_gain: more is better."""

    name: str
    unit: str
    of: Callable[[Point, Outlook], float | None]
    is_gain: bool = False

    def rank(self, points: Iterable[Point], outlook: Outlook) -> list[tuple[float, Point]]:
        """Return (value, point) for each point with a known value, the best first."""
        ranked = [(value, point) for point in points if (value := self.of(point, outlook)) is not None]
        return sorted(ranked, key=lambda one: one[0], reverse=self.is_gain)


ACCURACY = Measure("accuracy", "", lambda point, _: point.accuracy, is_gain=True)
ENERGY = Measure("energy", " mJ", Point.spent_mj)
LATE = Measure("time", " ms", Point.late_ms)
MEAN = Measure("time", " ms", Point.mean_ms)


class Bound(NamedTuple):
    """The largest allowed value of a measure, or the smallest if it is a gain. Unknown values are outside.

    is_share: the limit is this request's share of the time or energy for all waiting requests. Such a bound leads no
    lower than the front's floor, and unknown values are then within it.
    """

    measure: Measure
    limit: float
    is_share: bool = False

    def holds(self, point: Point, outlook: Outlook) -> bool:
        """Return whether the point is within the bound."""
        value = self.measure.of(point, outlook)
        if value is None:
            return self.is_share
        return value >= self.limit if self.measure.is_gain else value <= self.limit


CAN_RUN = Bound(LATE, math.inf)
"""Holds if the latencies of all models of a point are known."""


class Choice(NamedTuple):
    """The selected point and the measure that decided; None if the order of the points decided."""

    point: Point
    by: Measure | None = None


@dataclass(frozen=True)
class Front:
    """The points to select from: under load, by deadlines, by requirements and by the power budget.

    points: the most accurate first, each cheaper than the one before; for requirements all points, in the family's
    order. floor: place of the cheapest point that load and power budget may lead to, the one with the most right
    answers for its cost. Below it, rejecting some requests gives more right answers. Requests with little time may use
    cheaper points.
    """

    points: tuple[Point, ...] = ()
    floor: int = 0

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""
        return tuple(dict.fromkeys(model for point in self.points for model in point.policy.models))

    @property
    def cheapest(self) -> str | None:
        """Policy of the cheapest point that load and power budget lead to; None if that is the first."""
        return self.points[self.floor].policy.name if self.floor else None

    def select(
        self,
        outlook: Outlook,
        bounds: Sequence[Bound],
        prefers: Sequence[Measure] = (),
        without: Collection[str] = (),
    ) -> Choice | None:
        """Return the best point within all bounds, None if there is none.

        prefers: the first measure that is known for all points within the bounds decides; if none is, the first point
        is returned. without: policies and models that cannot be used.
        """
        within = (
            point
            for place, point in enumerate(self.points)
            if not point.uses(without)
            and all(bound.holds(point, outlook) for bound in bounds if not bound.is_share or place < self.floor)
        )
        if not prefers:
            first = next(within, None)
            return None if first is None else Choice(first)
        able = list(within)
        for measure in prefers:
            ranked = measure.rank(able, outlook)
            if able and len(ranked) == len(able):
                return Choice(ranked[0][1], measure)
        return Choice(able[0]) if able else None

    def select_now(self, outlook: Outlook) -> Point:
        """Return the most accurate point that a request may use now, otherwise the cheapest that can run.

        The point must keep the request's own budget, and its mean time and energy must not exceed the share of each
        waiting request. If no point can run, the first is returned: its error names the reason.
        """
        shares = Bound(MEAN, outlook.allowed_ms, is_share=True), Bound(ENERGY, outlook.allowed_mj, is_share=True)
        chosen = self.select(outlook, (Bound(LATE, outlook.budget_ms), *shares))
        chosen = chosen or self.select(outlook, (CAN_RUN,), (MEAN,))
        return self.points[0] if chosen is None else chosen.point

    def only(self, keep: Callable[[Point], Policy | None]) -> Front | None:
        """Return the front of the policies that `keep` returns for the points, None if it returns none."""
        able = [(point, policy) for point in self.points if (policy := keep(point)) is not None]
        if not able:
            return None
        below = sum(point in self.points[: self.floor + 1] for point, _ in able)
        return Front(tuple(replace(point, policy=policy) for point, policy in able), max(0, below - 1))


def point_of(policy: Policy, calibration: Calibration) -> Point | None:
    """Return the point of a policy, None if the calibration has no figures for it."""
    figures = calibration.figures.get(policy.name)
    if figures is None:
        return None
    runs = {model: share for model, share in figures["runs"].items() if share > 0}
    models_ms = sum(share * calibration.costs_ms[model] for model, share in runs.items())
    chooser_ms = max(0.0, figures["mean_ms"] - models_ms)
    paths = tuple(path.models for path in policy.paths) if isinstance(policy, ChainPolicy) else ()
    return Point(policy, figures["top1"], figures["mean_ms"], runs, chooser_ms, figures["mean_mj"], paths=paths)


def points_here(offered: Mapping[str, Policy], calibration: Calibration, here: Collection[str]) -> list[Point]:
    """Return the points of the policies that run on the device and have figures in the calibration."""
    served = set(here)
    paths = (policy for policy in offered.values() if set(policy.models) <= served)
    return [point for policy in paths if (point := point_of(policy, calibration)) is not None]


def features_of(points: Iterable[Point]) -> tuple[str, ...]:
    """Return the features that these points read. All points of a family that read features read the same."""
    return next((point.policy.features for point in points if point.policy.features), ())


def front_of(points: Iterable[Point], top: Point | None = None) -> Front | None:
    """Return the front of these points, None if there is none.

    top: the first point, in place of the most accurate one; all others cost less.
    """
    front: list[Point] = []
    for point in sorted(points, key=lambda point: point.known_ms):
        if top is not None and point.known_ms >= top.known_ms:
            break
        if not front or point.known_accuracy > front[-1].known_accuracy:
            front.append(point)
    all_points = [*([] if top is None else [top]), *reversed(front)]
    if not all_points:
        return None
    return Front(
        tuple(all_points), most_worth([one.known_accuracy for one in all_points], [one.known_ms for one in all_points])
    )


AROUND = 0.15  # share of the highest cost: about what an answered request costs beyond its models and a rejection


def most_worth(accuracy: Sequence[float], cost: Sequence[float]) -> int:
    """Return the place of the point with the most right answers for the cost of a request above a rejection."""
    around = AROUND * max(cost)
    return int(
        np.argmax([accuracy_of_point / (each + around) for accuracy_of_point, each in zip(accuracy, cost, strict=True)])
    )
