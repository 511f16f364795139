"""The policy that sends to an edge only what the models here are likely to get wrong (Eshratifar, Pedram, Table I)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import JetselError
from jetsel.policies.deadline import Allow
from jetsel.policies.kind import Kind, Part, Plan, Table
from jetsel.policies.multiplexing import Multiplexer
from jetsel.policies.policy import Decision, Evidence, OutOfTime, Policy, Run, Steps, run_or_fall_back
from jetsel.wire import Criterion

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration

NAME = "multiplexer-edge"


@dataclass(frozen=True, eq=False)
class MultiplexerEdge:
    """Local or edge: the best model here, if its chance is at least the edge's less a margin.

    here: the multiplexer's models that may answer here, cheapest first. away: the edge's model, as it is run; there: as
    the multiplexer may know it. accuracy: of that model, and its chance where the multiplexer does not know it. allow:
    as in [edge].
    """

    multiplexer: Multiplexer
    here: tuple[str, ...]
    away: str
    there: str
    accuracy: float
    margin: float
    allow: Allow
    name: str = NAME
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model here that it may run."""
        return self.here

    first = models

    def __call__(self, photo: Evidence) -> Steps:
        """Ask which, run it; what fails at the edge is answered here."""
        mux = self.multiplexer
        chances = yield from mux.ask()
        if chances is None:
            return (yield from self._local(photo, self.here[-1], f"{mux.name} is unavailable"))
        model, local, edge = self._weighed(chances)
        said = f"{model} is right with a chance of {local:.2f}, {self.away} of {edge:.2f}"
        if photo.on_device:
            return (yield from self._local(photo, model, f"the photograph may not leave the device; {said}"))
        if local >= edge - self.margin:
            return (yield from self._local(photo, model, f"{said}, no more than {self.margin:.2f} less"))
        decision: Decision | None = None
        if self.allow == "low-confidence":
            decision = yield from self._local(photo, model, f"{said}; the edge is asked where this is not sure")
            if decision.seen.confidence >= self.accuracy:
                return decision
            said = f"{decision.seen.model} was not sure: {decision.seen.confidence:.2f}"
        try:
            (seen,) = yield Run((self.away,), said, "deadline")
        except (JetselError, OutOfTime):
            return decision or (yield from self._local(photo, model, f"{self.away} did not answer"))
        return Decision(seen, said)

    def _local(self, photo: Evidence, model: str, because: str) -> Steps:
        """Answer here, by another model where this one is unavailable."""
        seen, because = yield from run_or_fall_back(model, because, photo.fallback or self.here[-1])
        return Decision(seen, because)

    def _weighed(self, chances: NDArray[np.float64]) -> tuple[str, float, float]:
        """Return the best model here, its chance, and that of the edge's."""
        place, local, edge = weighed(chances, self.multiplexer.models, self.here, self.there, self.accuracy)
        return self.here[int(place)], float(local), float(edge)


def weighed(
    chances: NDArray[np.float64], known: tuple[str, ...], here: tuple[str, ...], there: str, accuracy: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return which of the models here is best, its chance, and that of the edge's model, each (...,).

    chances: (..., N) of the known models. accuracy: the edge's chance where its model is none of these.
    """
    of_here = chances[..., [known.index(model) for model in here]]
    edge = chances[..., known.index(there)] if there in known else np.full(chances.shape[:-1], accuracy)
    return of_here.argmax(axis=-1), of_here.max(axis=-1), edge


def fit_margin(behind: NDArray[np.float64], local_right: NDArray[np.bool_], edge_right: NDArray[np.bool_]) -> float:
    """Return the largest margin at which as many photographs are right as where all go to the edge, each (n,).

    behind: how much smaller the chance here is than the edge's; where it is at most the margin, the answer comes from
    here. -1, which sends all, where none keeps that many right.
    """
    order = np.argsort(behind, kind="stable")
    gained = np.cumsum(local_right[order].astype(int) - edge_right[order].astype(int))
    is_last = np.append(np.diff(behind[order]) > 0, True)  # of those that are as far behind, all stay or none
    kept = np.flatnonzero(is_last & (gained >= 0))
    return float(behind[order][kept[-1]]) if len(kept) else -1.0


class MultiplexerEdgeKind(Kind):
    """Keeps what the multiplexer said of the photographs: which models are here, and which the edge has, decides later.

    So it makes no policy of its own: see daemon.outlook.
    """

    name = NAME
    facts = tuple[str, ...]
    asks_multiplexer = True

    def learn(self, train: Table, _plan: Plan) -> Table | None:
        """Keep the photographs; None without a multiplexer."""
        return None if train.chances is None else train

    def fitted(self, learned: Mapping[Criterion, Table], _chosen: Mapping[Criterion, Any]) -> Part:
        """Store the chances once, and of which models they are."""
        chances = next(iter(learned.values())).chances
        assert chances is not None
        return Part(
            {criterion: one.multiplexed for criterion, one in learned.items()}, {"chances": chances.astype(np.float32)}
        )

    def make(self, part: Part, calibration: Calibration) -> dict[Criterion, Policy]:
        """Check that the chances are of the calibration's photographs, and of its multiplexer's models."""
        mux, shape = Multiplexer.of(calibration), part.arrays["chances"].shape
        if shape != (calibration.photographs, len(mux.models)) or any(one != mux.models for one in part.facts.values()):
            raise ValueError(f"chances {shape} are not of {calibration.photographs} photographs and {mux.models}")
        return {}


def made_for(
    criterion: Criterion,
    calibration: Calibration,
    here: tuple[str, ...],
    away: str,
    there: str,
    accuracy: float,
    allow: Allow,
) -> MultiplexerEdge | None:
    """Return the policy for what is here and what the edge has, its margin fitted where the calibration knows both.

    None where the calibration has no multiplexer for it, none of its models is here, or, of a model that it knows
    nothing of, its weights are no chances to compare an accuracy with.
    """
    part = calibration.parts.get(NAME)
    if part is None or criterion not in part.facts:
        return None
    mux = Multiplexer.of(calibration)
    costs = dict(zip(mux.models, mux.costs, strict=True))
    able = tuple(sorted((model for model in mux.models if model in here and model != there), key=costs.__getitem__))
    models = list(calibration.identities)
    if not able or (there not in models and mux.loss != "right"):
        return None
    margin = 0.0
    if there in models:
        right = calibration.right[criterion]
        chances = part.arrays["chances"].astype(np.float64)
        best, local, edge = weighed(chances, mux.models, able, there, accuracy)
        columns = np.array([models.index(model) for model in able])[best]
        margin = fit_margin(edge - local, right[np.arange(len(right)), columns], right[:, models.index(there)])
    return MultiplexerEdge(mux, able, away, there, accuracy, margin, allow)
