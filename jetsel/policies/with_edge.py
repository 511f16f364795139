"""The policies that run models of an edge server: a single one, by deadline, or by requirements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jetsel.artefact.calibration import Calibration
from jetsel.base.config import EdgeSettings
from jetsel.base.errors import ConfigError
from jetsel.policies.deadline import EDGE, REDUCED, Deadline
from jetsel.policies.front import Front, Point, features_of, front_of, points_here
from jetsel.policies.policy import Decision, Evidence, Policy, Run, Steps
from jetsel.policies.requirements import Requirements
from jetsel.policies.single import Single


@dataclass(frozen=True)
class EdgePolicy:
    """Policy that runs `name`, a model of the edge server. If the run fails, the request fails.

    accuracy: the model's share of right answers, None if unknown. first_here: a local model that runs first; the image
    is sent only if its confidence is below that accuracy. None: the image is sent at once.
    """

    name: str
    accuracy: float | None
    first_here: str | None
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that may run, in order."""
        return (self.name,) if self.first_here is None else (self.first_here, self.name)

    @property
    def first_models(self) -> tuple[str, ...]:
        """The model that always runs."""
        return self.models[:1]

    def __call__(self, photo: Evidence) -> Steps:
        """Run the local model, if there is one, and the edge server's if needed."""
        why = "no path on the device meets the requirements"
        if self.first_here is not None:
            (prediction,) = yield Run((self.first_here,), f"{why}, and {self.name} runs if this answer is not sure")
            if self.accuracy is not None and prediction.confidence >= self.accuracy:
                reached = f"the confidence of {prediction.model} reaches the accuracy of {self.name}"
                return Decision(prediction, f"{reached}: {prediction.confidence:.2f}")
            why = f"{prediction.model} was not sure: {prediction.confidence:.2f}"
        (prediction,) = yield Run((self.name,), why, "deadline")
        return Decision(prediction, why)


def edge_point(
    name: str,
    accuracy: float | None,
    first_here: str | None = None,
    first_mj: float | None = 0.0,
    mj_per_kb: float | None = None,
) -> Point:
    """Return the point of an edge server's model. first_here: see EdgePolicy. first_mj: energy of that local model."""
    policy = EdgePolicy(name, accuracy, first_here)
    return Point(policy, accuracy, None, {}, 0.0, first_mj, is_away=True, mj_per_kb=mj_per_kb)


def deadline_policy(
    offered: Mapping[str, Policy],
    calibration: Calibration,
    local_models: Sequence[str],
    edge_models: Sequence[str],
    edge: EdgeSettings,
    least_accuracy: float | None = None,
) -> Deadline | None:
    """Return the policy of requests with a deadline, None if the calibration has figures of no local policy.

    offered: the family's policies by name. local_models, edge_models: names, cheapest first. edge: settings [edge].
    least_accuracy: lower bound of the choice; if no local policy reaches it, the best one's accuracy is the bound.
    Raises ConfigError if the accuracy of an edge server's model is unknown.
    """
    points = points_here(offered, calibration, local_models)
    least = min(least_accuracy or 0.0, max((point.known_accuracy for point in points), default=0.0))
    points = [point for point in points if point.known_accuracy >= least]
    front = front_of(points)
    if front is None:
        return None
    edge_accuracies = _edge_accuracies(calibration, edge_models, edge)
    away = Front(tuple(edge_point(name, right) for name, right in edge_accuracies.items() if right >= least))
    singles, features = singles_of(points, front), features_of(front.points)
    return Deadline(front, Single(local_models[-1]), singles, away, edge.allow, edge.duplicate, features=features)


def singles_of(points: Sequence[Point], front: Front) -> Front:
    """Return the points of the policies that run one of the front's models alone, the most accurate first."""
    by_name = {point.policy.name: point for point in points}
    singles = [by_name[name] for model in front.models if (name := f"single:{model}") in by_name]
    return Front(tuple(sorted(singles, key=lambda point: -point.known_accuracy)))


def requirements_policy(
    offered: Mapping[str, Policy],
    calibration: Calibration | None,
    local_models: Sequence[str],
    edge_models: Sequence[str],
    edge: EdgeSettings,
    no_energy: str | None,
) -> Requirements:
    """Return the policy of requests with requirements; each request then fills in its own.

    offered: the family's policies by name. calibration: if it is None, the paths are the single models with unknown
    figures. local_models, edge_models: names, cheapest first. no_energy: why energies are unknown, None if known.
    """
    figures = {} if calibration is None else calibration.figures
    points = [] if calibration is None else points_here(offered, calibration, local_models)
    first = local_models[0] if edge.allow == "low-confidence" else None
    first_mj = 0.0 if first is None else figures.get(f"single:{first}", {}).get("mean_mj")
    accuracy = {name: edge_accuracy(figures, name, edge) for name in edge_models}
    no_edge = 'edge.allow is "never"' if edge.allow == "never" else "it answers for another family (edge.family)"
    return Requirements(
        front=Front(tuple(points or [Point(Single(name), None, None, {}, 0.0, None) for name in local_models])),
        edge=Front(tuple(edge_point(*one, first, first_mj, edge.mj_per_kb) for one in accuracy.items())),
        saves="time" if calibration is None else calibration.objective,
        no_accuracy=None if points else "the family has no calibration with this value: jetsel calibrate IMAGES",
        no_energy=no_energy,
        no_edge=None if edge_models else "none is configured (edge.url)" if edge.url is None else no_edge,
        features=features_of(points),
    )


def _edge_accuracies(calibration: Calibration, edge_models: Sequence[str], edge: EdgeSettings) -> dict[str, float]:
    """Return the accuracy of each of the edge server's models. Raises ConfigError if one is unknown."""
    accuracy = {}
    for name in edge_models:
        calibrated = edge_accuracy(calibration.figures, name, edge)
        if calibrated is None:
            key = name.removeprefix(EDGE)
            raise ConfigError(f"edge.models.{key}.accuracy: the calibration has none; example: accuracy = 0.84")
        accuracy[name] = calibrated
    return accuracy


def edge_accuracy(figures: Mapping[str, Any], name: str, edge: EdgeSettings) -> float | None:
    """Return the configured, otherwise the calibrated accuracy of an edge server's model; None if neither is known."""
    model, _, px = name.removeprefix(EDGE).partition(REDUCED)
    entry = edge.models[model]
    accuracy = entry.accuracy_at_px[px] if px else entry.accuracy
    return figures.get(f"single:{model}", {}).get("top1") if accuracy is None else accuracy
