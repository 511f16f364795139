"""The operating points of a family: its default policy and cheaper cascades, of which one answers by what it may take.

Each point of the front is right less often than the one before it and costs less. Under load, or a power budget, the
daemon gets cheaper by going along the front instead of answering later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jetsel.policies.calibration import Calibration, Part
from jetsel.policies.cascade import Cascade, Rung, check_rungs, fitted_rungs
from jetsel.policies.kind import ChainPlan, Kind, Table
from jetsel.policies.policy import Outlook, Policy
from jetsel.premodel.cascades import Fitted
from jetsel.wire import Criterion

NAME = "front"
POINT = "cascade:"  # before the numbers of its points


class FrontKind(Kind):
    """The cascades of several budgets, as policies `cascade:1`, the most expensive one, `cascade:2` and so on."""

    name = NAME
    facts = tuple[tuple[Rung, ...], ...]

    def learn(self, train: Table, _plan: ChainPlan) -> tuple[tuple[str, ...], list[Fitted]]:
        """Fit a cascade for each budget."""
        return train.models, train.cascades

    def fitted(
        self, learned: Mapping[Criterion, tuple[tuple[str, ...], list[Fitted]]], chosen: Mapping[Criterion, Any]
    ) -> Part:
        """Store the cascades of the chosen budgets."""
        return Part(
            {
                criterion: tuple(fitted_rungs(models, cascades[place]) for place in chosen[criterion])
                for criterion, (models, cascades) in learned.items()
            }
        )

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, dict[str, Policy]]:
        """Return all points; the last rung of each must accept all, and each rung be a model of the calibration."""
        made: dict[Criterion, dict[str, Policy]] = {}
        for criterion, points in part.facts.items():
            made[criterion] = {}
            for number, rungs in enumerate(points, 1):
                check_rungs(rungs, criterion, calibration)
                made[criterion][f"{POINT}{number}"] = Cascade(f"{POINT}{number}", rungs)
        return made


@dataclass(frozen=True)
class Point:
    """One way to answer, and what it gives on images that it was not fitted on.

    accuracy: the share that is right. calibrated_ms: the mean time then. runs: model -> the share of the images that it
    runs on. chooser_ms: of features and choice. energy_mj: the mean above idle power, None if it was not measured.
    """

    policy: Policy
    accuracy: float
    calibrated_ms: float
    runs: Mapping[str, float]
    chooser_ms: float
    energy_mj: float | None

    def mean_ms(self, outlook: Outlook) -> float:
        """Return the mean time of an answer, as models take it now for one image, of a batch or alone."""
        return self.chooser_ms + sum(share * outlook.image_ms(model) for model, share in self.runs.items())

    def times_ms(self, outlook: Outlook) -> tuple[float, float]:
        """Return mean and deviation of the time with every model that may run: it can then go to its end."""
        means, deviations = zip(*(outlook.models_ms[model] for model in self.policy.models), strict=True)
        return float(sum(means)), math.hypot(*deviations)

    @property
    def needs(self) -> frozenset[str]:
        """The models without which it is not what was calibrated."""
        return frozenset((*self.policy.models, *self.runs))


@dataclass(frozen=True)
class Front:
    """points: the most accurate first, each cheaper than the one before.

    floor: the place of the cheapest point that load and power budget may lead to. It gives the most right answers for
    what it costs: with a cheaper one fewer would come in the same time, and refusing requests serves those who ask
    better. What is cheaper is there for requests with little time.
    """

    points: tuple[Point, ...]
    floor: int

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may run."""
        return tuple(dict.fromkeys(model for point in self.points for model in point.policy.models))

    @property
    def cheapest(self) -> str | None:
        """The policy of the cheapest point that load and power budget lead to, None if there is only one."""
        return self.points[self.floor].policy.name if self.floor else None

    def select(self, outlook: Outlook) -> Point:
        """Return the most accurate point that a request may take now, else the cheapest one that can run.

        It must be able to answer within the budget of the request itself, and in the mean take no more time and energy
        than what each of those that wait may take. The first point if none can run: its error says why.
        """
        able = [(place, point) for place, point in enumerate(self.points) if point.needs <= outlook.models_ms.keys()]
        for place, point in able:
            if sum(point.times_ms(outlook)) <= outlook.budget_ms and (
                place >= self.floor
                or (
                    point.mean_ms(outlook) <= outlook.allowed_ms
                    and (point.energy_mj is None or point.energy_mj <= outlook.allowed_mj)
                )
            ):
                return point
        return min((point for _, point in able), key=lambda point: point.mean_ms(outlook), default=self.points[0])

    def only(self, keep: Callable[[Point], Policy | None]) -> Front | None:
        """Return the front of the policies that `keep` returns for its points, None if it returns none."""
        kept = [(point, policy) for point in self.points if (policy := keep(point)) is not None]
        if not kept:
            return None
        below = sum(point in self.points[: self.floor + 1] for point, _ in kept)
        return Front(tuple(replace(point, policy=policy) for point, policy in kept), max(0, below - 1))


def points_of(
    policies: Mapping[str, Policy],
    figures: Mapping[str, Mapping[str, Any]],
    costs_ms: Mapping[str, float],
    criterion: Criterion,
) -> list[Point]:
    """Return the points of these policies, the cheapest first: those of which the calibration has figures.

    figures: by policy, as calibrations have them. costs_ms: of the models.
    """
    known = sorted((name for name in policies if name in figures), key=lambda name: float(figures[name]["mean_ms"]))
    return [_point(policies[name], figures[name], costs_ms, criterion) for name in known]


def _point(policy: Policy, figures: Mapping[str, Any], costs_ms: Mapping[str, float], criterion: Criterion) -> Point:
    runs = {model: share for model, share in figures["runs"].items() if share > 0}
    chooser_ms = figures["mean_ms"] - sum(share * costs_ms[model] for model, share in runs.items())
    return Point(policy, figures[criterion], figures["mean_ms"], runs, max(0.0, chooser_ms), figures["mean_mj"])


def front_of(cheapest_first: Sequence[Point], top: Point | None = None) -> Front | None:
    """Return the front of these points, None if there is none.

    top: the point that it begins with, in place of the most accurate one; all others cost less than that.
    """
    kept: list[Point] = []
    for point in cheapest_first:
        if top is not None and point.calibrated_ms >= top.calibrated_ms:
            break
        if not kept or point.accuracy > kept[-1].accuracy:
            kept.append(point)
    points = [*([] if top is None else [top]), *reversed(kept)]
    if not points:
        return None
    return Front(tuple(points), most_worth([one.accuracy for one in points], [one.calibrated_ms for one in points]))


AROUND = 0.15  # of the dearest point's cost: about what a request takes besides its models, more than a refusal does


def most_worth(accuracy: Sequence[float], cost: Sequence[float]) -> int:
    """Return the place of the point with the most right answers for what a request takes more than its refusal."""
    around = AROUND * max(cost)
    return int(np.argmax([known / (each + around) for known, each in zip(accuracy, cost, strict=True)]))
