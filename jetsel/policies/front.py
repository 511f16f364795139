"""The operating points of a family, and the one chooser among them, by accuracy, time and energy.

Each point of a front is right less often than the one before it and costs less. Under load, or a power budget, the
daemon gets cheaper by going along the front instead of answering later. Deadlines and requirements are other bounds.
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
    """One way to answer, and what it gives on images that it was not fitted on; None if the calibration does not know.

    accuracy: the share that is right. calibrated_ms: the mean time then. runs: model -> the share of the images that it
    runs on. chooser_ms: of features and choice. energy_mj: the mean above idle power, of models here. is_away: whether
    its last model is one of the edge, so that the network's time is added, and mj_per_kb for each 1,000 bytes. paths:
    the models of each path that it may choose; none: it may run all of its models.
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
        """Its accuracy, which must be known."""
        assert self.accuracy is not None
        return self.accuracy

    @property
    def known_ms(self) -> float:
        """Its mean time, which must be known."""
        assert self.calibrated_ms is not None
        return self.calibrated_ms

    @cached_property
    def needs(self) -> frozenset[str]:
        """The models without which it is not what was calibrated."""
        return frozenset((*self.policy.models, *self.runs))

    def uses(self, names: Collection[str]) -> bool:
        """Whether it is one of these policies, or may run one of these models."""
        return any(name in names for name in (self.policy.name, *self.policy.models))

    def times_ms(self, outlook: Outlook) -> tuple[float, float] | None:
        """Return mean and deviation of the time of the choice and its slowest path: it can then go to its end."""
        if not self.needs <= outlook.models_ms.keys() or (self.is_away and outlook.network_ms is None):
            return None
        beside = [(self.chooser_ms, 0.0)]
        if self.is_away and outlook.network_ms is not None:
            beside.append(outlook.network_ms)
        paths = self.paths or (self.policy.models,)
        return max((_in_all([*map(outlook.models_ms.__getitem__, path), *beside]) for path in paths), key=sum)

    def late_ms(self, outlook: Outlook) -> float | None:
        """Return the time of a slow answer: the mean and one deviation, on the slowest path."""
        times_ms = self.times_ms(outlook)
        return None if times_ms is None else sum(times_ms)

    def mean_ms(self, outlook: Outlook) -> float | None:
        """Return the mean time of an answer here, as models take it now for one image, of a batch or alone."""
        if not self.needs <= outlook.models_ms.keys():
            return None
        return self.chooser_ms + sum(share * outlook.image_ms(model) for model, share in self.runs.items())

    def spent_mj(self, outlook: Outlook) -> float | None:
        """Return the mean energy of an answer, with what sending this image takes."""
        if not self.is_away or self.energy_mj is None:
            return self.energy_mj
        sent_kb = outlook.traffic_kb.get(self.policy.models[-1])
        return None if sent_kb is None or self.mj_per_kb is None else self.energy_mj + sent_kb * self.mj_per_kb


def _in_all(times: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return mean and deviation of the sum of independent times of these means and deviations."""
    means, deviations = zip(*times, strict=True)
    return float(sum(means)), math.hypot(*deviations)


class Measure(NamedTuple):
    """What points are compared by. of: its value for one image now, None if unknown. is_gain: if more is better."""

    name: str
    unit: str
    of: Callable[[Point, Outlook], float | None]
    is_gain: bool = False

    def rank(self, points: Iterable[Point], outlook: Outlook) -> list[tuple[float, Point]]:
        """Return the points of which the value is known, and that, the best first."""
        ranked = [(value, point) for point in points if (value := self.of(point, outlook)) is not None]
        return sorted(ranked, key=lambda one: one[0], reverse=self.is_gain)


ACCURACY = Measure("accuracy", "", lambda point, _: point.accuracy, is_gain=True)
ENERGY = Measure("energy", " mJ", Point.spent_mj)
LATE = Measure("time", " ms", Point.late_ms)
MEAN = Measure("time", " ms", Point.mean_ms)


class Bound(NamedTuple):
    """The most that a measure may be, or the least if it is a gain. A value that is not known is outside of it.

    is_share: it is the request's share of what all that wait may take. It then leads no lower than the front's floor,
    and a value that is not known is within it.
    """

    measure: Measure
    limit: float
    is_share: bool = False

    def holds(self, point: Point, outlook: Outlook) -> bool:
        """Whether the point is within it."""
        value = self.measure.of(point, outlook)
        if value is None:
            return self.is_share
        return value >= self.limit if self.measure.is_gain else value <= self.limit


CAN_RUN = Bound(LATE, math.inf)
"""The times of all its models are known."""


class Choice(NamedTuple):
    """A point, and the measure by which it is the best within the bounds; None: it is the first."""

    point: Point
    by: Measure | None = None


@dataclass(frozen=True)
class Front:
    """The points among which one chooser selects: under load, by deadlines, requirements and the power budget.

    points: the most accurate first, each cheaper than the one before; for requirements all that there are, in the
    family's order. floor: the place of the cheapest point that load and power budget may lead to. It gives the most
    right answers for what it costs: with a cheaper one fewer would come in the same time, and refusing requests serves
    those who ask better. What is cheaper is there for requests with little time.
    """

    points: tuple[Point, ...] = ()
    floor: int = 0

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""
        return tuple(dict.fromkeys(model for point in self.points for model in point.policy.models))

    @property
    def cheapest(self) -> str | None:
        """The policy of the cheapest point that load and power budget lead to, None if there is only one."""
        return self.points[self.floor].policy.name if self.floor else None

    def select(
        self,
        outlook: Outlook,
        bounds: Sequence[Bound],
        prefers: Sequence[Measure] = (),
        without: Collection[str] = (),
    ) -> Choice | None:
        """Return the best point within all bounds, None if there is none.

        prefers: the first of these that is known of all points within the bounds says which is the best; without any,
        the first point is. without: policies and models that cannot be used.
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
        """Return the most accurate point that a request may take now, else the cheapest one that can run.

        It must be able to answer within the budget of the request itself, and in the mean take no more time and energy
        than what each of those that wait may take. The first point if none can run: its error says why.
        """
        shares = Bound(MEAN, outlook.allowed_ms, is_share=True), Bound(ENERGY, outlook.allowed_mj, is_share=True)
        chosen = self.select(outlook, (Bound(LATE, outlook.budget_ms), *shares))
        chosen = chosen or self.select(outlook, (CAN_RUN,), (MEAN,))
        return self.points[0] if chosen is None else chosen.point

    def only(self, keep: Callable[[Point], Policy | None]) -> Front | None:
        """Return the front of the policies that `keep` returns for its points, None if it returns none."""
        able = [(point, policy) for point in self.points if (policy := keep(point)) is not None]
        if not able:
            return None
        below = sum(point in self.points[: self.floor + 1] for point, _ in able)
        return Front(tuple(replace(point, policy=policy) for point, policy in able), max(0, below - 1))


def point_of(policy: Policy, calibration: Calibration) -> Point | None:
    """Return the point of a policy, None if the calibration has no figures of it."""
    figures = calibration.figures.get(policy.name)
    if figures is None:
        return None
    runs = {model: share for model, share in figures["runs"].items() if share > 0}
    models_ms = sum(share * calibration.costs_ms[model] for model, share in runs.items())
    chooser_ms = max(0.0, figures["mean_ms"] - models_ms)
    paths = tuple(path.models for path in policy.paths) if isinstance(policy, ChainPolicy) else ()
    return Point(policy, figures["top1"], figures["mean_ms"], runs, chooser_ms, figures["mean_mj"], paths=paths)


def points_here(offered: Mapping[str, Policy], calibration: Calibration, here: Collection[str]) -> list[Point]:
    """Return the points of the policies here of which the calibration has figures."""
    served = set(here)
    paths = (policy for policy in offered.values() if set(policy.models) <= served)
    return [point for policy in paths if (point := point_of(policy, calibration)) is not None]


def features_of(points: Iterable[Point]) -> tuple[str, ...]:
    """Return the features that these points read, none if they read none: those of one family read the same."""
    return next((point.policy.features for point in points if point.policy.features), ())


def front_of(points: Iterable[Point], top: Point | None = None) -> Front | None:
    """Return the front of these points, None if there is none.

    top: the point that it begins with, in place of the most accurate one; all others cost less than that.
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


AROUND = 0.15  # of the dearest point's cost: about what a request takes besides its models, more than a refusal does


def most_worth(accuracy: Sequence[float], cost: Sequence[float]) -> int:
    """Return the place of the point with the most right answers for what a request takes more than its refusal."""
    around = AROUND * max(cost)
    return int(
        np.argmax([accuracy_of_point / (each + around) for accuracy_of_point, each in zip(accuracy, cost, strict=True)])
    )
