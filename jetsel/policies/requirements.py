"""The policy of requests with requirements: MODI's decision stub (Ogden and Guo, sections 3 and 3.1).

The cheapest local path (policy on this device) that meets the required accuracy, time and energy answers; otherwise a
model of the edge server that does. If there is neither, the request is rejected with the nearest values. An unknown
value meets no requirement.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from msgspec import structs

from jetsel.base.errors import InDoubtError, JetselError, RequirementsError
from jetsel.policies.front import ACCURACY, ENERGY, LATE, Bound, Choice, Front, Measure
from jetsel.policies.policy import Evidence, Outlook, Steps

NAME = "requirements"
EXPECTED_TIME = Measure("time", " ms", lambda point, now: point.late_ms(now) if point.is_away else point.calibrated_ms)
"""What the cheapest path saves: calibrated mean latency; for the edge server, recent mean plus one deviation."""


@dataclass(frozen=True)
class Requirements:
    """Policy that chooses the cheapest of all paths that meet the requirements of one request.

    front: local paths. edge: paths that end at the edge server. saves: what the choice minimises. no_accuracy,
    no_energy, no_edge: why accuracy or energy is unknown, or the server unused; None if not. least_accuracy,
    most_energy_mj: requirements, None if not set. promise: for refusals, which paths keep the requested error rate.
    """

    front: Front
    edge: Front
    saves: Literal["time", "energy"]
    no_accuracy: str | None
    no_energy: str | None
    no_edge: str | None
    least_accuracy: float | None = None
    most_energy_mj: float | None = None
    promise: str | None = None
    name: str = NAME
    features: tuple[str, ...] = ()
    first_models: tuple[str, ...] = ()  # empty: the edge server may answer without a model here

    @property
    def models(self) -> tuple[str, ...]:
        """Every local model that may run."""
        return self.front.models

    def without_energies(self, why: str) -> Requirements:
        """Return the policy with all energies unknown, for conditions other than calibrated. why: for refusals."""
        front, edge = (Front(tuple(replace(p, energy_mj=None) for p in old.points)) for old in (self.front, self.edge))
        return replace(self, front=front, edge=edge, no_energy=why)

    def __call__(self, photo: Evidence) -> Steps:
        """Run the cheapest path that meets the requirements; if it fails, the next one. Raises RequirementsError."""
        outlook, failure = photo.outlook, None
        assert outlook is not None
        unusable, bounds = dict(outlook.unavailable), self._bounds(outlook.budget_ms)
        while True:
            choice = self._cheapest(self.front, outlook, bounds, unusable)
            choice = choice or self._cheapest(self.edge, outlook, bounds, unusable)
            if choice is None:
                raise failure or self._refusal(outlook, bounds, unusable)
            policy = choice.point.policy
            try:
                decision = yield from policy(photo)
            except InDoubtError:
                raise  # another path would answer an image that this one rejects, and break the promise
            except JetselError as error:
                unusable[policy.name], failure = str(error), error
                continue
            least = "is the cheapest" if choice.by is None else f"takes least {choice.by.name}"
            why = f"{policy.name} {least} of all paths that meet the requirements; {decision.because}"
            return structs.replace(decision, because=why)

    def _bounds(self, budget_ms: float) -> list[Bound]:
        """Return the requirements of the request as bounds. budget_ms: time until its deadline, infinite if none."""
        limits = ((ACCURACY, self.least_accuracy), (ENERGY, self.most_energy_mj), (LATE, budget_ms))
        return [Bound(measure, limit) for measure, limit in limits if limit is not None and math.isfinite(limit)]

    def _cheapest(self, front: Front, outlook: Outlook, bounds: list[Bound], without: Collection[str]) -> Choice | None:
        """Return the path of least energy (if `saves` says so and all are known) or least time; None if none fits."""
        measures = (ENERGY, EXPECTED_TIME) if self.saves == "energy" else (EXPECTED_TIME,)
        return front.select(outlook, bounds, measures, without)

    def _refusal(self, outlook: Outlook, bounds: list[Bound], unusable: Mapping[str, str]) -> RequirementsError:
        """Return the error: the nearest value to each requirement, and what cannot be used. unusable: name -> why."""
        by_reason = defaultdict(list)
        for name, reason in unusable.items():
            by_reason[reason].append(name)
        reasons = [self._nearest(bound, outlook, unusable) for bound in bounds]
        reasons += [f"{' and '.join(names)} cannot be used: {reason}" for reason, names in by_reason.items()]
        reasons += [] if self.no_edge is None else [f"no edge server can be used: {self.no_edge}"]
        reasons += [] if self.promise is None else [self.promise]
        return RequirementsError(f"no path meets all requirements: {'; '.join(reasons)}; require less")

    def _nearest(self, bound: Bound, outlook: Outlook, unusable: Mapping[str, str]) -> str:
        """Return which path comes nearest to a requirement, in words."""
        measure = bound.measure
        requirement = f"{measure.name} of at {'least' if measure.is_gain else 'most'} {bound.limit:.4g}{measure.unit}"
        points = (*self.front.points, *self.edge.points)
        if ranked := measure.rank((point for point in points if not point.uses(unusable)), outlook):
            value, point = ranked[0]
            return f"{requirement}: {point.policy.name} comes nearest with {value:.4g}{measure.unit}"
        why = {ACCURACY: self.no_accuracy, ENERGY: self.no_energy}.get(measure)
        return f"{requirement}: unknown for every path that can run" + (f" ({why})" if why else "")
