"""The policy of requests that say what their answer must have: MODI's decision stub (Ogden and Guo, sections 3, 3.1).

Of the paths here the cheapest answers that is accurate enough, in time, and within the energy; if none is, a model
of the edge that is; if none is there either, the request is refused, and told what came nearest. What is not known
meets no requirement.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from msgspec import structs

from jetsel.base.errors import InDoubtError, JetselError, RequirementsError
from jetsel.policies.policy import Evidence, Outlook, Policy, Steps

NAME = "requirements"


@dataclass(frozen=True)
class Path:
    """One way to answer, and what it has in the mean by the calibration, held out; None if that does not know.

    energy_mj: above idle power, of the models here. is_away: whether it asks the edge, so that sending comes on top.
    """

    policy: Policy
    accuracy: float | None
    mean_ms: float | None
    energy_mj: float | None
    is_away: bool = False


class Offer(NamedTuple):
    """What a path has for one photograph now.

    mean_ms: of a path here by the calibration, to compare costs by. most_ms: of late, mean and one deviation, a cascade
    with all of its rungs, as `deadline` has it.
    """

    name: str
    path: Path
    energy_mj: float | None
    mean_ms: float | None
    most_ms: float | None


@dataclass(frozen=True)
class Requirement:
    """One thing that a request asks for. unknown: why no path may have it known, None if that has no one reason."""

    what: str
    limit: float
    unit: str
    of: Callable[[Offer], float | None]
    is_least: bool = False
    unknown: str | None = None

    def is_met(self, offer: Offer) -> bool:
        """Whether a path has it."""
        value = self.of(offer)
        return value is not None and (value >= self.limit if self.is_least else value <= self.limit)

    def nearest(self, offers: Sequence[Offer]) -> str:
        """Say which path comes nearest."""
        wanted = f"{self.what} of at {'least' if self.is_least else 'most'} {self.limit:.4g}{self.unit}"
        known = {offer.name: value for offer in offers if (value := self.of(offer)) is not None}
        if not known:
            return f"{wanted}: unknown for every path that can run" + (f" ({self.unknown})" if self.unknown else "")
        name = (max if self.is_least else min)(known, key=known.__getitem__)
        return f"{wanted}: {name} comes nearest with {known[name]:.4g}{self.unit}"


@dataclass(frozen=True)
class Requirements:
    """Chooses among all paths by what one request asks for.

    paths: those here cheapest first, then the edge's. saves: what the cheapest takes least of. no_accuracy, no_energy,
    no_edge: why there is none, None if there is. promise: which paths keep the promise that the request asks for, in
    words.
    """

    paths: tuple[Path, ...]
    saves: Literal["time", "energy"]
    mj_per_kb: float | None
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
        return tuple(dict.fromkeys(model for path in self.paths if not path.is_away for model in path.policy.models))

    def without_energies(self, why: str) -> Requirements:
        """Return the policy for as long as no energy is known."""
        return replace(self, paths=tuple(replace(path, energy_mj=None) for path in self.paths), no_energy=why)

    def __call__(self, photo: Evidence) -> Steps:
        """Take a path, and another one if that fails."""
        outlook, failure = photo.outlook, None
        assert outlook is not None
        gone = dict(outlook.unavailable)
        while True:
            able = [path for path in self.paths if not gone.keys() & {path.policy.name, *path.policy.models}]
            offers = [self._offer(path, outlook) for path in able]
            if meeting := self._meeting(offers, outlook.budget_ms):
                chosen, why = self._cheapest(meeting)
            else:
                raise failure or self._refusal(offers, outlook.budget_ms, gone)
            try:
                decision = yield from chosen.path.policy(photo)
            except InDoubtError:
                raise  # another path would answer what this one refuses, and break its promise
            except JetselError as error:
                gone[chosen.name], failure = str(error), error
                continue
            return structs.replace(decision, because=f"{why}; {decision.because}")

    def _offer(self, path: Path, outlook: Outlook) -> Offer:
        """Return what a path has now."""
        models, energy_mj, most_ms = path.policy.models, path.energy_mj, None
        times = [outlook.models_ms[model] for model in models if model in outlook.models_ms]
        if path.is_away:
            sent_kb = outlook.traffic_kb.get(models[-1])
            if energy_mj is None or sent_kb is None or self.mj_per_kb is None:
                energy_mj = None
            else:
                energy_mj += sent_kb * self.mj_per_kb
            times += [] if outlook.network_ms is None else [outlook.network_ms]
        if len(times) == len(models) + path.is_away:
            means, deviations = zip(*times, strict=True)
            most_ms = sum(means) + math.hypot(*deviations)
        return Offer(path.policy.name, path, energy_mj, most_ms if path.is_away else path.mean_ms, most_ms)

    def _required(self, budget_ms: float) -> list[Requirement]:
        """Return all that the request asks for."""
        found = []
        if self.least_accuracy is not None:
            accuracy = Requirement(
                "accuracy", self.least_accuracy, "", lambda offer: offer.path.accuracy, True, self.no_accuracy
            )
            found.append(accuracy)
        if self.most_energy_mj is not None:
            found.append(
                Requirement("energy", self.most_energy_mj, " mJ", lambda offer: offer.energy_mj, False, self.no_energy)
            )
        if math.isfinite(budget_ms):
            found.append(Requirement("time", budget_ms, " ms", lambda offer: offer.most_ms))
        return found

    def _meeting(self, offers: Sequence[Offer], budget_ms: float) -> list[Offer]:
        """Return the paths here that have all that is asked for, else the edge's."""
        required = self._required(budget_ms)
        meeting = [offer for offer in offers if all(one.is_met(offer) for one in required)]
        return [offer for offer in meeting if not offer.path.is_away] or meeting

    def _cheapest(self, offers: Sequence[Offer]) -> tuple[Offer, str]:
        """Return the path that takes least of what is to be saved, as far as that is known of all; and why."""
        energies, times = [offer.energy_mj for offer in offers], [offer.mean_ms for offer in offers]
        measures = [("energy", energies), ("time", times)] if self.saves == "energy" else [("time", times)]
        for what, values in measures:
            known = [value for value in values if value is not None]
            if len(known) == len(offers):
                chosen = offers[known.index(min(known))]
                return chosen, f"{chosen.name} takes least {what} of all paths that meet the requirements"
        return offers[0], f"{offers[0].name} is the cheapest of all paths that meet the requirements"

    def _refusal(self, offers: Sequence[Offer], budget_ms: float, gone: Mapping[str, str]) -> RequirementsError:
        """Say of each requirement what came nearest, and what could not be asked."""
        by_reason = defaultdict(list)
        for name, reason in gone.items():
            by_reason[reason].append(name)
        told = [one.nearest(offers) for one in self._required(budget_ms)]
        told += [f"{' and '.join(names)} cannot be used: {reason}" for reason, names in by_reason.items()]
        told += [] if self.no_edge is None else [f"no edge server can be used: {self.no_edge}"]
        told += [] if self.promise is None else [self.promise]
        return RequirementsError(f"no path meets all requirements: {'; '.join(told)}; require less")
