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
    chooser_ms: time for features and choice. energy_mj: mean of the local models, above idle power. is_away: True if
    the last model runs on the edge server, which adds network time and mj_per_kb for each 1,000 bytes. paths: the
    models of each path that the policy selects from; () if all its models may run one after the other.
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
        """The accuracy, for points whose accuracy is known."""
        assert self.accuracy is not None
        return self.accuracy

    @property
    def known_ms(self) -> float:
        """The calibrated mean latency, for points whose latency is known."""
        assert self.calibrated_ms is not None
        return self.calibrated_ms

    @cached_property
    def needs(self) -> frozenset[str]:
        """The models that must be available for the calibrated figures to hold."""
        return frozenset((*self.policy.models, *self.runs))

    def uses(self, names: Collection[str]) -> bool:
        """Return whether `names` include this policy or one of its models."""
        return any(name in names for name in (self.policy.name, *self.policy.models))

    def times_ms(self, outlook: Outlook) -> tuple[float, float] | None:
        """Return mean and standard deviation of the slowest path's latency now; None if a model cannot run."""
        if not self.needs <= outlook.models_ms.keys() or (self.is_away and outlook.network_ms is None):
            return None
        overheads = [(self.chooser_ms, 0.0)]
        if self.is_away and outlook.network_ms is not None:
            overheads.append(outlook.network_ms)
        paths = self.paths or (self.policy.models,)
        return max((_sum_of_times([*map(outlook.models_ms.__getitem__, path), *overheads]) for path in paths), key=sum)

    def late_ms(self, outlook: Outlook) -> float | None:
        """Return mean plus one deviation of the slowest path's latency, a slow answer's; None if a model cannot run."""
        times_ms = self.times_ms(outlook)
        return None if times_ms is None else sum(times_ms)

    def mean_ms(self, outlook: Outlook) -> float | None:
        """Return the mean latency at the models' current speed, alone or in batches; None if a model cannot run."""
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
    """A figure to compare points by. value_of: for one image now, None if unknown. is_gain: True if more is better."""

    name: str
    unit: str
    value_of: Callable[[Point, Outlook], float | None]
    is_gain: bool = False

    def rank(self, points: Iterable[Point], outlook: Outlook) -> list[tuple[float, Point]]:
        """Return (value, point) for each point with a known value, the best first."""
        ranked = [(value, point) for point in points if (value := self.value_of(point, outlook)) is not None]
        return sorted(ranked, key=lambda value_and_point: value_and_point[0], reverse=self.is_gain)


ACCURACY = Measure("accuracy", "", lambda point, _: point.accuracy, is_gain=True)
ENERGY = Measure("energy", " mJ", Point.spent_mj)
LATE = Measure("time", " ms", Point.late_ms)
MEAN = Measure("time", " ms", Point.mean_ms)


class Bound(NamedTuple):
    """A limit for a measure: the largest allowed value, or the smallest if it is a gain. Unknown values violate it.

    is_share: True if the limit divides time or energy among all waiting requests. Unknown values then keep it, and
    points at or below the front's floor are not held to it.
    """

    measure: Measure
    limit: float
    is_share: bool = False

    def holds(self, point: Point, outlook: Outlook) -> bool:
        """Return whether the point keeps the limit now."""
        value = self.measure.value_of(point, outlook)
        if value is None:
            return self.is_share
        return value >= self.limit if self.measure.is_gain else value <= self.limit


CAN_RUN = Bound(LATE, math.inf)
"""Holds if all models of a point can run: their latencies are known."""


class Choice(NamedTuple):
    """The selected point. by: the measure that decided; None if the order of the points did."""

    point: Point
    by: Measure | None = None


@dataclass(frozen=True)
class Front:
    """The operating points to select from, under load, by deadlines, by requirements and by the power budget.

    points: the most accurate first, each cheaper than the one before; for requirements all points, in the family's
    order. floor: index of the cheapest point that load and power budget may lead to, which has the most right answers
    for its cost: below it, rejecting some requests gives more right answers. Requests with little time may go below.
    """

    points: tuple[Point, ...] = ()
    floor: int = 0

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""
        return tuple(dict.fromkeys(model for point in self.points for model in point.policy.models))

    @property
    def cheapest(self) -> str | None:
        """Name of the policy at the floor, the cheapest that load leads to; None if that is the first point."""
        return self.points[self.floor].policy.name if self.floor else None

    def select(
        self,
        outlook: Outlook,
        bounds: Sequence[Bound],
        prefers: Sequence[Measure] = (),
        without: Collection[str] = (),
    ) -> Choice | None:
        """Return the best point that keeps all bounds, None if none does.

        prefers: the first of these measures that is known for all such points decides; if none is, the first point is
        returned. without: names of policies and models that cannot be used.
        """
        within = (
            point
            for index, point in enumerate(self.points)
            if not point.uses(without)
            and all(bound.holds(point, outlook) for bound in bounds if not bound.is_share or index < self.floor)
        )
        if not prefers:
            first = next(within, None)
            return None if first is None else Choice(first)
        candidates = list(within)
        for measure in prefers:
            ranked = measure.rank(candidates, outlook)
            if candidates and len(ranked) == len(candidates):
                return Choice(ranked[0][1], measure)
        return Choice(candidates[0]) if candidates else None

    def select_now(self, outlook: Outlook) -> Point:
        """Return the most accurate point that a request may use now; if none fits, the fastest that can run.

        It must keep the request's deadline, and its mean time and energy must not exceed what each waiting request may
        spend. If no point can run, the first is returned: running it raises an error that names the reason.
        """
        shares = Bound(MEAN, outlook.allowed_ms, is_share=True), Bound(ENERGY, outlook.allowed_mj, is_share=True)
        chosen = self.select(outlook, (Bound(LATE, outlook.budget_ms), *shares))
        chosen = chosen or self.select(outlook, (CAN_RUN,), (MEAN,))
        return self.points[0] if chosen is None else chosen.point

    def only(self, keep: Callable[[Point], Policy | None]) -> Front | None:
        """Return the front with the policies that `keep` returns for the points, None if it returns None for all."""
        kept_points = [(point, policy) for point in self.points if (policy := keep(point)) is not None]
        if not kept_points:
            return None
        to_floor = sum(point in self.points[: self.floor + 1] for point, _ in kept_points)
        return Front(tuple(replace(point, policy=policy) for point, policy in kept_points), max(0, to_floor - 1))


def point_of(policy: Policy, calibration: Calibration) -> Point | None:
    """Return the operating point of a policy, None if the calibration has no figures for it."""
    figures = calibration.figures.get(policy.name)
    if figures is None:
        return None
    runs = {model: share for model, share in figures["runs"].items() if share > 0}
    models_ms = sum(share * calibration.costs_ms[model] for model, share in runs.items())
    chooser_ms = max(0.0, figures["mean_ms"] - models_ms)
    paths = tuple(path.models for path in policy.paths) if isinstance(policy, ChainPolicy) else ()
    return Point(policy, figures["top1"], figures["mean_ms"], runs, chooser_ms, figures["mean_mj"], paths=paths)


def points_here(offered: Mapping[str, Policy], calibration: Calibration, here: Collection[str]) -> list[Point]:
    """Return the points of the policies that have figures and need only the models `here`, on this device."""
    served = set(here)
    paths = (policy for policy in offered.values() if set(policy.models) <= served)
    return [point for policy in paths if (point := point_of(policy, calibration)) is not None]


def features_of(points: Iterable[Point]) -> tuple[str, ...]:
    """Return the names of the features that these points read, () if none: those that read features read the same."""
    return next((point.policy.features for point in points if point.policy.features), ())


def front_of(points: Iterable[Point], top: Point | None = None) -> Front | None:
    """Return the points that no other beats in both accuracy and latency, as a front; None without points.

    top: the first point, in place of the most accurate one; all others then cost less.
    """
    front: list[Point] = []
    for point in sorted(points, key=lambda point: point.known_ms):
        if top is not None and point.known_ms >= top.known_ms:
            break
        if not front or point.known_accuracy > front[-1].known_accuracy:
            front.append(point)
    points_of_front = (*([] if top is None else [top]), *reversed(front))
    if not points_of_front:
        return None
    accuracy = [point.known_accuracy for point in points_of_front]
    return Front(points_of_front, most_efficient(accuracy, [point.known_ms for point in points_of_front]))


OVERHEAD_SHARE = 0.15  # of the highest cost: about what an answered request costs beyond its models and a rejection


def most_efficient(accuracy: Sequence[float], cost: Sequence[float]) -> int:
    """Return the index of the point with the most right answers per cost of a request, overhead included."""
    overhead = OVERHEAD_SHARE * max(cost)
    return int(np.argmax([right / (spent + overhead) for right, spent in zip(accuracy, cost, strict=True)]))
