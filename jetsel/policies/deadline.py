"""The policy of requests with a deadline: MDInference (Ogden and Guo, section IV), here and with an edge.

It selects among paths, single models and cascades, by the three stages of section IV-D over arrays. If an edge can be
asked, a model here and the one that is selected there run at the same time, and the more accurate answer that is there
by the deadline is taken (IV-E), unless a path here is as likely to be right; what section VI asks for, to duplicate
only if it is needed, is `duplicate`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from jetsel.base.errors import JetselError
from jetsel.policies.front import Front, Point
from jetsel.policies.policy import Decision, Evidence, Outlook, OutOfTime, Policy, Run, Steps

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Models(NamedTuple):
    """What is known of m models: (m,) float64 each."""

    accuracy: Floats
    mean_ms: Floats
    deviation_ms: Floats


def base(budgets_ms: Floats, models: Models) -> Indices:
    """Stage one, (1) and (2): the most accurate whose mean + deviation is below the budget, else the fastest."""
    order = np.lexsort((models.mean_ms, -models.accuracy))  # the best first
    fits = (models.mean_ms + models.deviation_ms)[order] < budgets_ms[:, None]
    return np.where(fits.any(axis=1), order[fits.argmax(axis=1)], models.mean_ms.argmin())


def explored(bases: Indices, models: Models) -> NDArray[np.bool_]:
    """Stage two, (n, m): the models whose mean lies within one deviation of the base's."""
    away_ms = np.abs(models.mean_ms - models.mean_ms[bases][:, None])
    return away_ms <= models.deviation_ms[bases][:, None]


def utilities(budgets_ms: Floats, models: Models) -> Floats:
    """Utility (3), (n, m): accuracy times (T - (mean + deviation)) / |T - mean|; 0 if it would be negative.

    A negative utility is no probability. If the budget is the mean, the numerator is not positive: it is 0 there.
    """
    left_ms = budgets_ms[:, None] - models.mean_ms
    above_ms = left_ms - models.deviation_ms
    return np.where(above_ms > 0, models.accuracy * above_ms / np.maximum(np.abs(left_ms), 1e-12), 0.0)


def chances(budgets_ms: Floats, models: Models) -> Floats:
    """Return how likely each model is picked, (n, m): the utilities of the explored ones, shared out.

    The base if none of them has any: it is then the fastest model, and nothing keeps the deadline.
    """
    bases = base(budgets_ms, models)
    weights = np.where(explored(bases, models), utilities(budgets_ms, models), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    alone = np.eye(len(models.accuracy))[bases]
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), alone)


def pick(probabilities: Floats, draws: Floats) -> Indices:
    """Stage three: return the model that each draw falls on, (n,); never one of probability 0."""
    steps = probabilities.cumsum(axis=1)
    picked: Indices = (steps <= draws[:, None] * steps[:, -1:]).sum(axis=1)
    return picked


def mdinference(budgets_ms: Floats, models: Models, draws: Floats) -> Indices:
    """Return the model of each request by all three stages, (n,)."""
    return pick(chances(budgets_ms, models), draws)


NAME = "deadline"
EDGE = "edge:"  # before the names of the edge's models, which may be those of models here
REDUCED = "@"  # in the names of the edge's models: what follows is the size of the photograph that they are sent
SINGLE = "single:"
CERTAIN = 2.33  # standard deviations: of a normal time 99 % are below
WORTH = 0.02  # of being right: for less nothing is sent, nor waited for
HANDOVER_MS = 1.0  # from a timer to the model's start
Allow = Literal["never", "low-confidence", "always"]
Duplicate = Literal["always", "when-needed", "never"]


@dataclass(frozen=True)
class Deadline:
    """Chooses by the time that is left.

    front: the paths here; otherwise: the policy for requests without a deadline. elsewhere: the edge's models.
    accuracy: of single models here and of the edge's models, by calibration. as_published: whether a path is drawn as
    in section IV-D, stage three included; otherwise the most accurate one is selected that a request may take now.
    """

    front: Front
    otherwise: Policy
    elsewhere: tuple[str, ...]
    accuracy: Mapping[str, float]
    allow: Allow
    duplicate: Duplicate
    as_published: bool = False
    features: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`deadline`, or `deadline:mdinference`."""
        return f"{NAME}:mdinference" if self.as_published else NAME

    @property
    def models(self) -> tuple[str, ...]:
        """Every model here that it may run; those elsewhere come and go."""
        return self.front.models

    @property
    def first(self) -> tuple[str, ...]:
        """Any of them may be the only one."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose a path for the time that is left, here or both here and there."""
        outlook = photo.outlook
        if outlook is None:
            return (yield from self.otherwise(photo))
        if outlook.network_ms is None or self.allow == "never":
            return (yield from self._here(photo, outlook))
        leg = self._leg(outlook)
        away = self._away(outlook, outlook.network_ms, leg)
        if away is None:
            return (yield from self._here(photo, outlook))
        if leg is None:
            (seen,) = yield Run((away.model,), "no model here can run", "deadline")
            return Decision(seen, f"{away.model} answered in time")
        path = self._path(outlook)
        together = away.likely * self.accuracy[away.model] + (1 - away.likely) * self.accuracy[SINGLE + leg]
        if path.accuracy >= together - WORTH:
            return (yield from self._here(photo, outlook))
        here_ms, deviation_ms = outlook.models_ms[leg]
        has_time = away.spare_ms - here_ms - deviation_ms >= CERTAIN * away.spread_ms
        if self.allow == "low-confidence" or (self.duplicate == "when-needed" and has_time):
            return (yield from self._here_first(leg, away.model))
        is_certain = self.duplicate != "always" and away.spare_ms >= CERTAIN * away.spread_ms
        if self.duplicate == "never" and not is_certain:
            return (yield from self._here(photo, outlook))
        held_ms = here_ms + CERTAIN * deviation_ms + HANDOVER_MS
        return (yield from self._together(leg, away.model, held_ms if is_certain else None))

    # The ways.

    def _here(self, photo: Evidence, outlook: Outlook) -> Steps:
        """Take the path that is selected here."""
        chosen = self._path(outlook).policy
        decision = yield from chosen(photo)
        why = f"{chosen.name} is expected within {outlook.budget_ms:.0f} ms; {decision.because}"
        return structs.replace(decision, because=why, operating_point=chosen.name)

    def _together(self, leg: str, chosen: str, held_ms: float | None) -> Steps:
        """Run both. held_ms: the one here only if nothing has come so long before the deadline."""
        because = f"{chosen} {'may come late' if held_ms is None else 'is nearly certain to come'}"
        seen = yield Run((leg, chosen), because, "deadline", held_ms)
        return Decision(seen[-1], f"{seen[-1].model} gave the best answer before the deadline")

    def _here_first(self, leg: str, chosen: str) -> Steps:
        """Ask the edge if the answer here is less likely to be right than the edge's."""
        (seen,) = yield Run((leg,), f"{chosen} runs next if this answer is not sure")
        if seen.confidence >= self.accuracy[chosen]:
            return Decision(seen, f"the confidence of {leg} reaches the accuracy of {chosen}: {seen.confidence:.2f}")
        best = seen
        with contextlib.suppress(JetselError, OutOfTime):
            (best,) = yield Run((chosen,), f"{leg} was not sure: {seen.confidence:.2f}", "deadline")
        return Decision(best, f"{best.model} gave the best answer before the deadline")

    # What they choose by.

    def _away(self, outlook: Outlook, network_ms: tuple[float, float], leg: str | None) -> _Away | None:
        """Select among the edge's models: by default the one that adds most to what the model here is right on.

        None if none can be asked. The paper's selection knows nothing of the network's deviation, nor of reduced
        photographs, which are theirs only if the whole would come too late.
        """
        left_ms = outlook.budget_ms - network_ms[0]
        known = {name: outlook.models_ms[name] for name in self.elsewhere if name in outlook.models_ms}
        found = {
            name: _Away(name, left_ms - mean_ms, math.hypot(deviation_ms, network_ms[1]))
            for name, (mean_ms, deviation_ms) in known.items()
        }
        if not found:
            return None
        if not self.as_published:
            floor = 0.0 if leg is None else self.accuracy[SINGLE + leg]
            return max(found.values(), key=lambda one: one.likely * (self.accuracy[one.model] - floor))
        whole = {name.partition(REDUCED)[0]: sum(times) for name, times in known.items() if REDUCED not in name}
        offered = {
            name: times_ms
            for name, times_ms in known.items()
            if REDUCED not in name or whole.get(name.partition(REDUCED)[0], math.inf) >= left_ms
        }
        return found[self._select(offered, left_ms, outlook.draw, self.accuracy)]

    def _path(self, outlook: Outlook) -> Point:
        """Select among the paths here: the front's way, or as published by a draw.

        For that a cascade counts with all of its rungs, so that it can go to its end.
        """
        if not self.as_published:
            return self.front.select(outlook)
        known = {
            point.policy.name: point
            for point in self.front.points
            if outlook.models_ms.keys() >= set(point.policy.models)
        }
        times = {name: point.times_ms(outlook) for name, point in known.items()}
        if not times:
            return self.front.points[0]
        accuracy = {name: point.accuracy for name, point in known.items()}
        return known[self._select(times, outlook.budget_ms, outlook.draw, accuracy)]

    def _select(
        self, times_ms: Mapping[str, tuple[float, float]], left_ms: float, draw: float, accuracy: Mapping[str, float]
    ) -> str:
        """Select the most accurate whose mean and deviation fit, else the fastest; or as published, by a draw."""
        names = list(times_ms)
        means, deviations = zip(*times_ms.values(), strict=True)
        models = Models(np.array([accuracy[name] for name in names]), np.array(means), np.array(deviations))
        budgets_ms = np.array([left_ms])
        if self.as_published:
            return names[int(mdinference(budgets_ms, models, np.array([draw]))[0])]
        return names[int(base(budgets_ms, models)[0])]

    def _leg(self, outlook: Outlook) -> str | None:
        """The model here that runs beside the edge: the most accurate that keeps the deadline, else the fastest.

        Section IV-E takes the fastest. If another keeps the deadline, too, that one is right more often.
        """
        known = {one: sum(outlook.models_ms[one]) for one in self.models if one in outlook.models_ms}
        known = {one: ms for one, ms in known.items() if SINGLE + one in self.accuracy}
        timely = [one for one, ms in known.items() if ms + HANDOVER_MS <= outlook.budget_ms]
        if timely:
            return max(timely, key=lambda one: self.accuracy[SINGLE + one])
        return min(known, key=known.__getitem__, default=None)


@dataclass(frozen=True)
class _Away:
    """A model of the edge, the time that it would leave before the deadline, and the standard deviation of that."""

    model: str
    spare_ms: float
    spread_ms: float

    @property
    def likely(self) -> float:
        """How likely its answer is there by the deadline, were times normal."""
        return (1 + math.erf(self.spare_ms / (max(self.spread_ms, 1e-9) * math.sqrt(2)))) / 2
