"""The policy of requests with a deadline: MDInference (Ogden and Guo, section IV), here and with an edge.

Here it selects among paths, single models and cascades. Where an edge can be asked, the fastest model here and the one
that is selected there run at the same time, and the more accurate answer that is there by the deadline is taken
(IV-E); what section VI asks for, to duplicate only where it is needed, is `duplicate`.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jetsel.errors import JetselError
from jetsel.policies.comparison import MDINFERENCE, SELECTIONS
from jetsel.policies.policy import Decision, Evidence, Outlook, OutOfTime, Policy, Prediction, Run, Steps
from jetsel.policies.selection import Models

NAME = "deadline"
REDUCED = "@"  # in the names of the edge's models: what follows is the size of the photograph that they are sent
CERTAIN = 2.33  # standard deviations: of a normal time 99 % are below
HANDOVER_MS = 1.0  # from a timer to the model's start
Allow = Literal["never", "low-confidence", "always"]
Duplicate = Literal["always", "when-needed", "never"]


@dataclass(frozen=True)
class Deadline:
    """Chooses by the time that is left.

    paths: policies here, by name; otherwise: the one for requests without a deadline. elsewhere: the edge's models.
    accuracy: of paths and of the edge's models, by calibration. selection: how one is selected, of SELECTIONS.
    """

    paths: Mapping[str, Policy]
    otherwise: Policy
    elsewhere: tuple[str, ...]
    accuracy: Mapping[str, float]
    allow: Allow
    duplicate: Duplicate
    selection: str = MDINFERENCE
    features: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`deadline`; of what it is compared with, `deadline:` and the selection."""
        return NAME if self.selection == MDINFERENCE else f"{NAME}:{self.selection}"

    @property
    def models(self) -> tuple[str, ...]:
        """Every model here that it may run; those elsewhere come and go."""
        return tuple(dict.fromkeys(model for path in self.paths.values() for model in path.models))

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
        left_ms = outlook.budget_ms - outlook.network_ms[0]
        there = self._there(outlook, left_ms)
        if not there:
            return (yield from self._here(photo, outlook))
        chosen = self._select(there, left_ms, outlook)
        path = self._path(outlook)
        if path is not None and self.accuracy[path] >= self.accuracy[chosen]:
            return (yield from self._here(photo, outlook))
        mean_ms, deviation_ms = there[chosen]
        spread_ms = math.hypot(deviation_ms, outlook.network_ms[1])
        is_certain = left_ms - mean_ms >= CERTAIN * spread_ms
        fastest = self._fastest(outlook)
        if fastest is None:
            return (yield from self._one_of_them(photo, outlook, chosen, is_certain=True))
        here_ms = sum(outlook.models_ms[fastest])
        has_time = left_ms - mean_ms - here_ms >= CERTAIN * spread_ms
        if self.allow == "low-confidence" or (self.duplicate == "when-needed" and has_time):
            return (yield from self._here_first(fastest, chosen))
        if self.duplicate == "never":
            return (yield from self._one_of_them(photo, outlook, chosen, is_certain=is_certain))
        held_ms = outlook.models_ms[fastest][0] + CERTAIN * outlook.models_ms[fastest][1] + HANDOVER_MS
        return (yield from self._together(fastest, chosen, held_ms if is_certain else None))

    # The ways.

    def _here(self, photo: Evidence, outlook: Outlook) -> Steps:
        """Take the path that is selected here."""
        chosen = self._path(outlook)
        if chosen is None:
            return (yield from self.otherwise(photo))
        decision = yield from self.paths[chosen](photo)
        why = f"{chosen} is expected within {outlook.budget_ms:.0f} ms; {decision.because}"
        return Decision(decision.seen, why, decision.in_doubt, decision.distance)

    def _together(self, fastest: str, chosen: str, held_ms: float | None) -> Steps:
        """Run both. held_ms: the one here only where nothing has come so long before the deadline."""
        if self.duplicate == "always" or held_ms is None:
            asked = Run((fastest, chosen), f"together: {chosen} may come late", "deadline")
        else:
            asked = Run((fastest, chosen), f"{chosen} is nearly certain to come", "deadline", held_ms)
        seen = yield asked
        return Decision(seen[-1], f"{seen[-1].model} is the best that came by the deadline")

    def _here_first(self, fastest: str, chosen: str) -> Steps:
        """Ask the edge where the answer here is less likely to be right than the edge's."""
        (seen,) = yield Run((fastest,), f"{chosen} is asked where this is not sure")
        if seen.confidence >= self.accuracy[chosen]:
            return Decision(seen, f"{fastest} is as sure as {chosen} would be right: {seen.confidence:.2f}")
        better = yield from _try(chosen, f"{fastest} was not sure: {seen.confidence:.2f}")
        return Decision(better or seen, f"{(better or seen).model} is the best that came by the deadline")

    def _one_of_them(self, photo: Evidence, outlook: Outlook, chosen: str, *, is_certain: bool) -> Steps:
        """Never both: the edge where its answer is nearly certain to come, else a path here."""
        if not is_certain:
            return (yield from self._here(photo, outlook))
        seen = yield from _try(chosen, f"{chosen} is expected well within {outlook.budget_ms:.0f} ms")
        if seen is None:
            return (yield from self._here(photo, outlook))
        return Decision(seen, f"{chosen} answered in time")

    # What they choose by.

    def _there(self, outlook: Outlook, left_ms: float) -> dict[str, tuple[float, float]]:
        """Return the edge's models; a photograph is reduced only where the whole of it would come too late."""
        found = {}
        for name in self.elsewhere:
            known, whole = outlook.models_ms.get(name), outlook.models_ms.get(name.partition(REDUCED)[0])
            if known is not None and (REDUCED not in name or whole is None or sum(whole) >= left_ms):
                found[name] = known
        return found

    def _path(self, outlook: Outlook) -> str | None:
        """Select among the paths here; a cascade counts with all of its rungs, so that it can go to its end."""
        times: dict[str, tuple[float, float]] = {}
        for name, path in self.paths.items():
            known = [outlook.models_ms[model] for model in path.models if model in outlook.models_ms]
            if len(known) == len(path.models):
                means, deviations = zip(*known, strict=True)
                times[name] = (sum(means), math.hypot(*deviations))
        return self._select(times, outlook.budget_ms, outlook) if times else None

    def _select(self, times_ms: Mapping[str, tuple[float, float]], left_ms: float, outlook: Outlook) -> str:
        names = list(times_ms)
        means, deviations = zip(*times_ms.values(), strict=True)
        models = Models(np.array([self.accuracy[name] for name in names]), np.array(means), np.array(deviations))
        select, draws = SELECTIONS[self.selection], np.array([outlook.draw])
        return names[int(select(np.array([left_ms]), outlook.budget_ms, models, draws)[0])]

    def _fastest(self, outlook: Outlook) -> str | None:
        """The fastest model here that can run."""
        known = {model: sum(outlook.models_ms[model]) for model in self.models if model in outlook.models_ms}
        return min(known, key=known.__getitem__, default=None)


def _try(model: str, because: str) -> Generator[Run, tuple[Prediction, ...], Prediction | None]:
    """Ask a model elsewhere until the deadline; None where it fails before."""
    try:
        (seen,) = yield Run((model,), because, "deadline")
    except (JetselError, OutOfTime):
        return None
    return seen
