"""The policy that sends to an edge only what the models here are likely to get wrong (Eshratifar, Pedram, Table I)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import JetselError
from jetsel.policies.calibration import Calibration
from jetsel.policies.deadline import Allow
from jetsel.policies.multiplexer import NAME as MULTIPLEXER
from jetsel.policies.multiplexer import Multiplexer
from jetsel.policies.policy import Decision, Evidence, OutOfTime, Prediction, Run, Steps, run_or_fall_back
from jetsel.wire import Criterion

NAME = "multiplexer-edge"
FOLDS = 5
TOLERATED = 0.005  # of right answers, by which an ordering may miss the edge's accuracy in folds


@dataclass(frozen=True)
class Margin:
    """An image stays here if the edge's chance, `weight` times, is at most `most` above the chance here.

    weight: 1, or 0, if the chance here alone decides.
    """

    weight: int
    most: float

    def stays(self, local: NDArray[np.float64], edge: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether images stay, (...,), by both chances."""
        stays: NDArray[np.bool_] = self.weight * edge - local <= self.most
        return stays


@dataclass(frozen=True, eq=False)
class MultiplexerEdge:
    """Local or edge: the best model here, if its chance is large enough once the cheapest ran.

    models_known: the calibration's, whose chances the multiplexer gives; the first of them runs. here: those that may
    answer here, cheapest first. away: the edge's model, as it is run; there: as the calibration may know it. accuracy:
    of that model, and its chance if the calibration does not know it. allow: as in [edge].
    """

    multiplexer: Multiplexer
    models_known: tuple[str, ...]
    here: tuple[str, ...]
    away: str
    there: str
    accuracy: float
    margin: Margin
    allow: Allow
    name: str = NAME
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model here that it may run."""
        return self.here

    @property
    def first(self) -> tuple[str, ...]:
        """The cheapest always runs."""
        return self.here[:1]

    def __call__(self, photo: Evidence) -> Steps:
        """Run the cheapest, ask which, run it; what fails at the edge is answered here."""
        cheapest = self.here[0]
        seen, why = yield from run_or_fall_back(
            cheapest, "its answer decides what runs next", photo.fallback or self.here[-1]
        )
        if seen.model != cheapest:
            return Decision(seen, why)
        try:
            known = self.multiplexer.chances(seen)
        except ValueError as fault:
            return Decision(seen, f"{seen.model} returns no usable embedding: {fault}")
        place, local, edge = weighed(known, self.models_known, self.here, self.there, self.accuracy)
        model = self.here[int(place)]
        chances = f"{model} is right with a probability of {float(local):.2f}, {self.away} with {float(edge):.2f}"
        if photo.on_device:
            return (yield from self._local(seen, model, f"the image may not leave the device; {chances}"))
        if self.margin.stays(local, edge):
            return (yield from self._local(seen, model, chances))
        decision: Decision | None = None
        if self.allow == "low-confidence":
            next_ = "the edge server is used if this answer is not sure"
            decision = yield from self._local(seen, model, f"{chances}; {next_}")
            if decision.seen.confidence >= self.accuracy:
                return decision
            chances = f"{decision.seen.model} was not sure: {decision.seen.confidence:.2f}"
        try:
            (there,) = yield Run((self.away,), chances, "deadline")
        except (JetselError, OutOfTime):
            return decision or (yield from self._local(seen, model, f"{self.away} did not answer"))
        return Decision(there, chances)

    def _local(self, seen: Prediction, model: str, because: str) -> Steps:
        """Answer here: by what ran already, if that is the model, or if the model is unavailable."""
        if model == seen.model:
            return Decision(seen, because)
        better, because = yield from run_or_fall_back(model, because, seen.model)
        return Decision(better, because)


def weighed(
    chances: NDArray[np.floating], known: tuple[str, ...], here: tuple[str, ...], there: str, accuracy: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return which of the models here is best, its chance, and that of the edge's model, each (...,).

    chances: (..., N) of the known models. accuracy: the edge's chance if its model is none of these.
    """
    of_here = chances[..., [known.index(model) for model in here]].astype(np.float64)
    edge = chances[..., known.index(there)] if there in known else np.full(chances.shape[:-1], accuracy)
    return of_here.argmax(axis=-1), of_here.max(axis=-1), edge.astype(np.float64)


def fit_most(behind: NDArray[np.floating], local_right: NDArray[np.bool_], edge_right: NDArray[np.bool_]) -> float:
    """Return the largest limit at which as many images are right as if all went to the edge, each (n,).

    behind: what is compared with the limit; at most so much, and the answer comes from here. -2, which sends all, if
    none keeps that many right.
    """
    order = np.argsort(behind, kind="stable")
    gained = np.cumsum(local_right[order].astype(int) - edge_right[order].astype(int))
    is_last = np.append(np.diff(behind[order]) > 0, True)  # of those that are as far behind, all stay or none
    kept = np.flatnonzero(is_last & (gained >= 0))
    return float(behind[order][kept[-1]]) if len(kept) else -2.0


def fit_margin(
    local: NDArray[np.floating],
    edge: NDArray[np.floating],
    local_right: NDArray[np.bool_],
    edge_right: NDArray[np.bool_],
) -> tuple[Margin, NDArray[np.bool_]]:
    """Return the margin by which most images stay at the edge's accuracy, and which images stay in folds; all (n,).

    Folds choose the weight: the one by which more images stay, of those that lose at most TOLERATED there.
    """
    fold_of, found = np.arange(len(local)) % FOLDS, []
    for weight in (0, 1):
        behind, stays = weight * edge - local, np.zeros(len(local), bool)
        for fold in range(FOLDS):
            held = fold_of == fold
            most = fit_most(behind[~held], local_right[~held], edge_right[~held])
            stays[held] = behind[held] <= most
        lost = float((stays & edge_right & ~local_right).mean() - (stays & local_right & ~edge_right).mean())
        found.append((lost <= TOLERATED, float(stays.mean()), weight, stays))
    _, _, weight, stays = max(found, key=lambda one: one[:3])
    return Margin(weight, fit_most(weight * edge - local, local_right, edge_right)), stays


def made_for(
    criterion: Criterion,
    calibration: Calibration,
    here: tuple[str, ...],
    away: str,
    there: str,
    accuracy: float,
    allow: Allow,
) -> MultiplexerEdge | None:
    """Return the policy for what is here and what the edge has, its margin fitted if the calibration knows both.

    None if the calibration has no multiplexer, or its cheapest model, which must run first, is not here.
    """
    part, known = calibration.parts.get(MULTIPLEXER), tuple(calibration.identities)
    able = tuple(model for model in known if model in here and model != there)
    if part is None or criterion not in part.facts or known[0] not in able:
        return None
    mux, margin = Multiplexer.of(part, criterion, calibration), Margin(1, 0.0)
    if there in known:
        right = calibration.right[criterion]
        best, local, edge = weighed(mux.held_out, known, able, there, accuracy)
        columns = np.array([known.index(model) for model in able])[best]
        margin, _ = fit_margin(local, edge, right[np.arange(len(right)), columns], right[:, known.index(there)])
    return MultiplexerEdge(mux, known, able, away, there, accuracy, margin, allow)
