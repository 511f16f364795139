"""The policy of requests that say what their answer must have: MODI's decision stub (Ogden and Guo, sections 3, 3.1).

Of the paths here the cheapest answers that is accurate enough, in time, and within the energy; if none is, a model
of the edge that is; if none is there either, the request is refused, and told what came nearest. What is not known
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
"""The mean time of a path here by the calibration, which knows none of the edge: there, of late with one deviation."""


@dataclass(frozen=True)
class Requirements:
    """Chooses among all paths by what one request asks for.

    front: the paths here. edge: those that end at the edge. saves: what the cheapest takes least of. no_accuracy,
    no_energy, no_edge: why there is none, None if there is. promise: which paths keep the promise that the request
    asks for, in words.
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
        """Every model here that it may run."""
        return self.front.models

    def without_energies(self, why: str) -> Requirements:
        """Return the policy for as long as no energy is known."""
        here, away = (tuple(replace(point, energy_mj=None) for point in one.points) for one in (self.front, self.edge))
        return replace(self, front=Front(here), edge=Front(away), no_energy=why)

    def __call__(self, photo: Evidence) -> Steps:
        """Take a path, and another one if that fails."""
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
                raise  # another path would answer what this one refuses, and break its promise
            except JetselError as error:
                gone[policy.name], failure = str(error), error
                continue
            least = "is the cheapest" if choice.by is None else f"takes least {choice.by.name}"
            why = f"{policy.name} {least} of all paths that meet the requirements; {decision.because}"
            return structs.replace(decision, because=why)

    def _bounds(self, budget_ms: float) -> list[Bound]:
        """Return all that the request asks for."""
        limits = ((ACCURACY, self.least_accuracy), (ENERGY, self.most_energy_mj), (LATE, budget_ms))
        return [Bound(measure, limit) for measure, limit in limits if limit is not None and math.isfinite(limit)]

    def _cheapest(self, front: Front, outlook: Outlook, bounds: list[Bound], gone: Mapping[str, str]) -> Choice | None:
        """Return the path that takes least of what is to be saved, as far as that is known of all that meet it all."""
        return front.select(outlook, bounds, (ENERGY, COST) if self.saves == "energy" else (COST,), gone)

    def _refusal(self, outlook: Outlook, bounds: list[Bound], gone: Mapping[str, str]) -> RequirementsError:
        """Say of each requirement what came nearest, and what could not be asked."""
        by_reason = defaultdict(list)
        for name, reason in gone.items():
            by_reason[reason].append(name)
        reasons = [self._nearest(bound, outlook, gone) for bound in bounds]
        reasons += [f"{' and '.join(names)} cannot be used: {reason}" for reason, names in by_reason.items()]
        reasons += [] if self.no_edge is None else [f"no edge server can be used: {self.no_edge}"]
        reasons += [] if self.promise is None else [self.promise]
        return RequirementsError(f"no path meets all requirements: {'; '.join(reasons)}; require less")

    def _nearest(self, bound: Bound, outlook: Outlook, gone: Mapping[str, str]) -> str:
        """Say which path comes nearest to a requirement."""
        measure = bound.measure
        requirement = f"{measure.name} of at {'least' if measure.is_gain else 'most'} {bound.limit:.4g}{measure.unit}"
        points = (*self.front.points, *self.edge.points)
        if ranked := measure.rank((point for point in points if not point.uses(gone)), outlook):
            value, point = ranked[0]
            return f"{requirement}: {point.policy.name} comes nearest with {value:.4g}{measure.unit}"
        why = {ACCURACY: self.no_accuracy, ENERGY: self.no_energy}.get(measure)
        return f"{requirement}: unknown for every path that can run" + (f" ({why})" if why else "")
