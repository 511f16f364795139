"""The policy that sends to an edge only what the models here are likely to get wrong (Eshratifar, Pedram, Table I).

The most expensive model of a recording is the edge server's. `multiplexer-edge` was a policy of jetsel once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import JetselError
from jetsel.calibrate.fit.cross_validation import Learned, learn
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.recording import Recording
from jetsel.policies.kind import Kind, Table
from jetsel.policies.multiplexer import NAME as MULTIPLEXER
from jetsel.policies.multiplexer import Readout
from jetsel.policies.policy import Decision, Evidence, OutOfTime, Prediction, Run, Steps, run_or_fall_back

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

    here: the models that may answer here, cheapest first. away: the edge's model, the last one that the readout knows.
    """

    readout: Readout
    here: tuple[str, ...]
    away: str
    margin: Margin
    name: str = NAME
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may run."""
        return (*self.here, self.away)

    @property
    def first_models(self) -> tuple[str, ...]:
        """The cheapest always runs."""
        return self.here[:1]

    def __call__(self, photo: Evidence) -> Steps:
        """Run the cheapest, ask which, run it; what fails at the edge is answered here."""
        cheapest = self.here[0]
        stands_in = photo.fallback or self.here[-1]
        seen, why = yield from run_or_fall_back(cheapest, "its answer decides what runs next", stands_in)
        if seen.model != cheapest:
            return Decision(seen, why)
        try:
            *local, edge = self.readout.chances_after(seen)
        except ValueError as fault:
            return Decision(seen, f"{seen.model} returns no usable embedding: {fault}")
        place = int(np.argmax(local))
        model, chance = self.here[place], local[place]
        because = f"{model} is right with a probability of {chance:.2f}, {self.away} with {edge:.2f}"
        if self.margin.stays(chance, edge):
            return (yield from _answer_here(seen, model, because))
        try:
            (there,) = yield Run((self.away,), because, "deadline")
        except (JetselError, OutOfTime):
            return (yield from _answer_here(seen, model, f"{self.away} did not answer"))
        return Decision(there, because)


def _answer_here(seen: Prediction, model: str, because: str) -> Steps:
    """Answer by what ran already, if that is the model, or if the model is unavailable."""
    if model == seen.model:
        return Decision(seen, because)
    better, because = yield from run_or_fall_back(model, because, seen.model)
    return Decision(better, because)


@dataclass(frozen=True, eq=False)
class Taught:
    """What a recording taught, by policy, with it, its table and the temperatures of its models."""

    train: Recording
    temperatures: Mapping[str, float]
    table: Table
    policies: Learned


def taught(train: Recording, kinds: Sequence[Kind]) -> Taught:
    """Learn policies of these kinds from a recording."""
    temperatures = fit_temperatures(train)
    table = train.table(temperatures)
    return Taught(train, temperatures, table, learn(table, kinds))


def fitted(learned: Taught) -> MultiplexerEdge:
    """Return the policy, its margin fitted on the images of `learned`."""
    network, models, right = learned.policies[MULTIPLEXER], learned.train.models, learned.train.right
    best = network.held_out[:, :-1].argmax(axis=1)
    rows = np.arange(len(best))
    margin, _ = fit_margin(network.held_out[rows, best], network.held_out[:, -1], right[rows, best], right[:, -1])
    return MultiplexerEdge(network.readout, models[:-1], models[-1], margin)


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
