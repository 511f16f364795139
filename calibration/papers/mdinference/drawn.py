"""The deadline policy as MDInference published it: a path here and a model of the edge are drawn (section IV-D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.papers.mdinference.stages import Models, mdinference
from jetsel.policies.deadline import REDUCED, Deadline
from jetsel.policies.front import Front, Point
from jetsel.policies.policy import Evidence, Outlook, Steps
from jetsel.policies.with_edge import singles_of

NAME = "deadline:mdinference"


@dataclass(frozen=True)
class DrawnDeadline(Deadline):
    """Selects by all three stages. chance: of the draws. draw: that of the request, uniform in [0, 1)."""

    name: str = NAME
    chance: np.random.Generator | None = None
    draw: float = 0.0

    def __call__(self, photo: Evidence) -> Steps:
        """Draw once for the request: the path here and the model of the edge are selected by the same number."""
        assert self.chance is not None
        return Deadline.__call__(replace(self, draw=self.chance.random()), photo)

    def local_path(self, outlook: Outlook) -> Point:
        """Draw among the paths whose models can run; a cascade counts with all of its rungs: it can go to its end."""
        known = [(point, times) for point in self.front.points if (times := point.times_ms(outlook)) is not None]
        return self._drawn(known, outlook.budget_ms) if known else self.front.points[0]

    def best_edge_model(self, outlook: Outlook, least: float) -> Point | None:  # noqa: ARG002  # the paper asks for none
        """Draw among the edge's models; a reduced photograph only if the whole one would come too late.

        The paper's selection knows nothing of the network's deviation, nor of reduced photographs.
        """
        assert outlook.network_ms is not None
        left_ms, times = outlook.budget_ms - outlook.network_ms[0], outlook.models_ms
        late = {name for name in times if sum(times[name]) >= left_ms}
        known = [(point, times[name]) for point in self.edge.points if (name := point.policy.name) in times]
        offered = []
        for point, taken in known:
            whole, reduced, _ = point.policy.name.partition(REDUCED)
            if not reduced or whole in late or whole not in times:
                offered.append((point, taken))
        return self._drawn(offered, left_ms) if offered else None

    def _drawn(self, known: Sequence[tuple[Point, tuple[float, float]]], left_ms: float) -> Point:
        """Return the point that the draw falls on. known: points with mean and deviation of their time."""
        means, deviations = zip(*(times for _, times in known), strict=True)
        models = Models(np.array([point.known_accuracy for point, _ in known]), np.array(means), np.array(deviations))
        (place,) = mdinference(np.array([left_ms]), models, np.array([self.draw]))
        return known[int(place)][0]


def drawn(timed: Deadline, points: Sequence[Point], chance: np.random.Generator) -> DrawnDeadline:
    """Return the policy that draws among all of these points here, and otherwise does as `timed`."""
    front = Front(tuple(sorted(points, key=lambda point: -point.known_accuracy)))
    there = timed.otherwise, singles_of(points, front), timed.edge, timed.allow, timed.duplicate
    return DrawnDeadline(front, *there, chance=chance)
