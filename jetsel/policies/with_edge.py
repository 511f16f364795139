"""The policies that run models of an edge server: one that is named, or what the calibration knows of paths here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jetsel.base.config import Edge
from jetsel.base.errors import ConfigError
from jetsel.policies.calibration import Calibration
from jetsel.policies.deadline import EDGE, REDUCED, Deadline
from jetsel.policies.front import Front, front_of, points_of
from jetsel.policies.policy import Decision, Evidence, Policy, Run, Steps
from jetsel.policies.single import Single
from jetsel.wire import Criterion


@dataclass(frozen=True)
class AskEdge:
    """Asks `name`, a model of the edge, whose failure is the caller's to hear.

    accuracy: how often that is right, None if it is not known. first_here: the model here that must have been less
    sure than that before a photograph may leave; None: none must.
    """

    name: str
    accuracy: float | None
    first_here: str | None
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Those that may run, in that order."""
        return (self.name,) if self.first_here is None else (self.first_here, self.name)

    @property
    def first(self) -> tuple[str, ...]:
        """The one that runs in any case."""
        return self.models[:1]

    def __call__(self, photo: Evidence) -> Steps:
        """Ask."""
        why = "no path on the device meets the requirements"
        if self.first_here is not None:
            (seen,) = yield Run((self.first_here,), f"{why}, and {self.name} runs if this answer is not sure")
            if self.accuracy is not None and seen.confidence >= self.accuracy:
                reached = f"the confidence of {seen.model} reaches the accuracy of {self.name}"
                return Decision(seen, f"{reached}: {seen.confidence:.2f}")
            why = f"{seen.model} was not sure: {seen.confidence:.2f}"
        (seen,) = yield Run((self.name,), why, "deadline")
        return Decision(seen, why)


def deadline_policies(
    criterion: Criterion,
    offered: Mapping[str, Policy],
    calibration: Calibration,
    here: Sequence[str],
    elsewhere: Sequence[str],
    edge: Edge,
    least_accuracy: float | None = None,
) -> list[Deadline]:
    """Return the policy that goes by time, and the one that selects as MDInference published it.

    None if the calibration does not say how accurate what is here is. offered: the policies of the family. here,
    elsewhere: names of models, cheapest first. least_accuracy: of what is chosen; if nothing here has it, the most
    accurate is. Raises ConfigError if it is not known how accurate one of the edge is.
    """
    figures = calibration.figures.get(criterion, {})
    points = points_of(known_paths(criterion, offered, calibration, here), figures, calibration.costs_ms, criterion)
    least = min(least_accuracy or 0.0, max((point.accuracy for point in points), default=0.0))
    points = [point for point in points if point.accuracy >= least]
    front = front_of(points)
    if front is None:
        return []
    there = _accuracy_of(criterion, calibration, elsewhere, edge)
    there = {name: known for name, known in there.items() if known >= least}
    accuracy = {point.policy.name: point.accuracy for point in points} | there
    every = Front(tuple(sorted(points, key=lambda point: -point.accuracy)), 0)
    otherwise, away = Single(here[-1]), tuple(there)
    return [
        Deadline(paths, otherwise, away, accuracy, edge.allow, edge.duplicate, as_published)
        for paths, as_published in ((front, False), (every, True))
    ]


def known_paths(
    criterion: Criterion, offered: Mapping[str, Policy], calibration: Calibration, here: Sequence[str]
) -> dict[str, Policy]:
    """Return the single models and cascades here of which the calibration has figures."""
    figures = calibration.figures.get(criterion, {})
    return {
        name: policy
        for name, policy in offered.items()
        if name in figures and not policy.features and set(policy.models) <= set(here)
    }


def _accuracy_of(
    criterion: Criterion, calibration: Calibration, elsewhere: Sequence[str], edge: Edge
) -> dict[str, float]:
    """Return how accurate the edge's models are, as configured or calibrated; raises ConfigError for one unknown."""
    figures, accuracy = calibration.figures.get(criterion, {}), {}
    for name in elsewhere:
        known = accuracy_there(criterion, figures, name, edge)
        if known is None:
            there = name.removeprefix(EDGE)
            raise ConfigError(f"edge.models.{there}.accuracy: the calibration has none; example: accuracy = 0.84")
        accuracy[name] = known
    return accuracy


def accuracy_there(criterion: Criterion, figures: Mapping[str, Any], name: str, edge: Edge) -> float | None:
    """Return how accurate one of the edge's models is, as configured or calibrated, None if neither says it."""
    there, _, px = name.removeprefix(EDGE).partition(REDUCED)
    told = edge.models[there]
    known = told.accuracy_at_px[px] if px else told.accuracy
    return figures.get(f"single:{there}", {}).get(criterion) if known is None else known
