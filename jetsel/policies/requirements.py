"""The policy of requests with requirements: MODI's decision stub (Ogden and Guo, sections 3 and 3.1).

The cheapest path on the device that is accurate enough, in time and within the energy answers; otherwise a model of the
edge server that meets all three. If there is neither, the request is rejected with the nearest values. An unknown value
meets no requirement.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from msgspec import structs

from jetsel.base.errors import InDoubtError, JetselError, RequirementsError
from jetsel.policies.front import ACCURACY, ENERGY, LATE, Bound, Choice, Front, Measure
from jetsel.policies.policy import Evidence, Outlook, Steps

NAME = "requirements"
COST = Measure("time", " ms", lambda point, now: point.late_ms(now) if point.is_away else point.calibrated_ms)
"""Calibrated mean latency of a path here. For the edge server: recent mean plus one deviation."""


@dataclass(frozen=True)
class Requirements:
    """Chooses among all paths by the requirements of one request.

    front: the paths here. edge: the paths that end at the edge server. saves: what the choice minimises. no_accuracy,
    no_energy, no_edge: why it is unknown or missing, None if it is not. promise: which paths keep the requested
    promise, in words.
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
    first: tuple[str, ...] = ()  # the edge may answer without a model here

    @property
    def models(self) -> tuple[str, ...]:
        """Every model here that may run."""
        return self.front.models

    def without_energies(self, why: str) -> Requirements:
        """Return the policy with all energies unknown. why: the reason, for refusals."""
        here, away = (tuple(replace(point, energy_mj=None) for point in one.points) for one in (self.front, self.edge))
        return replace(self, front=Front(here), edge=Front(away), no_energy=why)

    def __call__(self, photo: Evidence) -> Steps:
        """Follow the cheapest path that meets the requirements; if it fails, follow the next one."""
        outlook, failure = photo.outlook, None
        assert outlook is not None
        gone, bounds = dict(outlook.unavailable), self._bounds(outlook.budget_ms)
        while True:
            choice = self._cheapest(self.front, outlook, bounds, gone)
            choice = choice or self._cheapest(self.edge, outlook, bounds, gone)
            if choice is None:
                raise failure or self._refusal(outlook, bounds, gone)
            policy = choice.point.policy
            try:
                decision = yield from policy(photo)
            except InDoubtError:
                raise  # another path would answer an image that this one rejects, and break the promise
            except JetselError as error:
                gone[policy.name], failure = str(error), error
                continue
            least = "is the cheapest" if choice.by is None else f"takes least {choice.by.name}"
            why = f"{policy.name} {least} of all paths that meet the requirements; {decision.because}"
            return structs.replace(decision, because=why)

    def _bounds(self, budget_ms: float) -> list[Bound]:
        """Return the bounds that the request sets."""
        limits = ((ACCURACY, self.least_accuracy), (ENERGY, self.most_energy_mj), (LATE, budget_ms))
        return [Bound(measure, limit) for measure, limit in limits if limit is not None and math.isfinite(limit)]

    def _cheapest(self, front: Front, outlook: Outlook, bounds: list[Bound], gone: Mapping[str, str]) -> Choice | None:
        """Return the cheapest path within the bounds: by energy if saved and known for all of them, else by time."""
        return front.select(outlook, bounds, (ENERGY, COST) if self.saves == "energy" else (COST,), gone)

    def _refusal(self, outlook: Outlook, bounds: list[Bound], gone: Mapping[str, str]) -> RequirementsError:
        """Return the error: for each requirement the nearest value, and the paths that cannot be used."""
        by_reason = defaultdict(list)
        for name, reason in gone.items():
            by_reason[reason].append(name)
        reasons = [self._nearest(bound, outlook, gone) for bound in bounds]
        reasons += [f"{' and '.join(names)} cannot be used: {reason}" for reason, names in by_reason.items()]
        reasons += [] if self.no_edge is None else [f"no edge server can be used: {self.no_edge}"]
        reasons += [] if self.promise is None else [self.promise]
        return RequirementsError(f"no path meets all requirements: {'; '.join(reasons)}; require less")

    def _nearest(self, bound: Bound, outlook: Outlook, gone: Mapping[str, str]) -> str:
        """Return which path comes nearest to a requirement, in words."""
        measure = bound.measure
        requirement = f"{measure.name} of at {'least' if measure.is_gain else 'most'} {bound.limit:.4g}{measure.unit}"
        points = (*self.front.points, *self.edge.points)
        if ranked := measure.rank((point for point in points if not point.uses(gone)), outlook):
            value, point = ranked[0]
            return f"{requirement}: {point.policy.name} comes nearest with {value:.4g}{measure.unit}"
        why = {ACCURACY: self.no_accuracy, ENERGY: self.no_energy}.get(measure)
        return f"{requirement}: unknown for every path that can run" + (f" ({why})" if why else "")
