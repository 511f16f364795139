"""What deadlines and an edge will give, by replaying the policy of deadlines on a recording in simulated time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jetsel.calibrate.recording import Recording
from jetsel.edge.link import FEWEST, Link
from jetsel.edge.simulation.networks import Network
from jetsel.policies.deadline import REDUCED, Deadline
from jetsel.policies.policy import Decision, Evidence, Outlook, OutOfTime, Prediction, Run
from jetsel.runtime.driver import SETTLED_S

SPREAD = 0.1  # of a model's mean: the standard deviation of its times, which a recording does not have
EDGE = "edge:"


@dataclass(frozen=True)
class Predicted:
    """Shares of the requests: right, in time, right and in time, answered by the edge; and the mean time."""

    accuracy: float
    on_time: float
    effective: float
    from_edge: float
    mean_ms: float


@dataclass(frozen=True, eq=False)
class World:
    """What a request meets. costs_ms: mean time of a run by model, the edge's among them, at work alone.

    around_ms: what a request takes besides its models.
    """

    recording: Recording
    temperatures: Mapping[str, float]
    costs_ms: Mapping[str, float]
    network: Network
    around_ms: float


def predict(policy: Deadline, world: World, deadline_ms: float, seed: int) -> Predicted:
    """Replay the policy on every photograph of the recording, one request after the other."""
    chance = np.random.default_rng(seed)
    photographs = chance.permutation(len(world.recording.classes))
    network_ms = world.network.draw(len(photographs) + FEWEST, chance)
    link = Link()
    for way_ms in network_ms[:FEWEST]:  # the edge is tried at connection
        link.observe(0, float(way_ms))
    rows = np.zeros((len(photographs), 3))
    for place, photograph in enumerate(photographs):
        request = _Request(world, int(photograph), float(network_ms[FEWEST + place]), deadline_ms, chance)
        rows[place] = request.carry(policy, link)
    right, from_edge, took_ms = rows.T
    on_time = took_ms <= deadline_ms
    shares = (right.mean(), on_time.mean(), (right * on_time).mean(), from_edge.mean(), took_ms.mean())
    return Predicted(*(float(share) for share in shares))


class _Request:
    """One request, on a clock of its own that begins with it."""

    def __init__(
        self, world: World, photograph: int, way_ms: float, deadline_ms: float, chance: np.random.Generator
    ) -> None:
        self._world = world
        self._photograph = photograph
        self._way_ms = way_ms
        self._end_ms = deadline_ms - SETTLED_S * 1e3
        self._chance = chance
        self._now_ms = world.around_ms

    def carry(self, policy: Deadline, link: Link) -> tuple[bool, bool, float]:
        """Return whether the answer is right, whether the edge gave it, and the time it took in ms."""
        known = {name: (ms, SPREAD * ms) for name, ms in self._world.costs_ms.items() if REDUCED not in name}
        left_ms = self._end_ms + SETTLED_S * 1e3 - self._now_ms
        steps = policy(Evidence(None, None, Outlook(left_ms, known, link.estimate(0), self._chance.random())))
        seen: Prediction | None = None
        try:
            asked = next(steps)
            while True:
                if any(model.startswith(EDGE) for model in asked.models):
                    link.observe(0, self._way_ms)
                found = self._run(asked)
                seen = found[-1] if found else seen
                asked = steps.send(found) if found else steps.throw(OutOfTime())
        except StopIteration as stop:
            decision: Decision = stop.value
            seen = decision.seen
        except OutOfTime:
            pass
        if seen is None:
            return False, False, self._now_ms
        return seen.label == self._world.recording.classes[self._photograph], seen.model.startswith(EDGE), self._now_ms

    def _run(self, asked: Run) -> tuple[Prediction, ...]:
        """Let the models run, and the clock with them; return what came."""
        away = {m: self._now_ms + self._way_ms + self._takes_ms(m) for m in asked.models if m.startswith(EDGE)}
        first_ms = min(away.values(), default=np.inf)
        begin_ms = self._now_ms if asked.held_ms is None else max(self._now_ms, self._end_ms - asked.held_ms)
        here = {m: begin_ms + self._takes_ms(m) for m in asked.models if m not in away}
        if asked.held_ms is not None and first_ms <= begin_ms:
            here = {}
        ends = here | away
        if asked.until == "deadline":
            best_ms = ends.get(asked.models[-1], np.inf)
            self._now_ms = min(best_ms, max(self._end_ms, self._now_ms))
        else:
            (last_ms,) = (max(ends.values()),)
            if last_ms > self._end_ms and not away and self._now_ms > self._world.around_ms:
                return ()  # the driver does not begin what cannot end in time, once there is an answer
            self._now_ms = last_ms
        return tuple(self._said(model) for model in asked.models if ends.get(model, np.inf) <= self._now_ms)

    def _takes_ms(self, model: str) -> float:
        mean_ms = self._world.costs_ms[model]
        return max(0.0, float(self._chance.normal(mean_ms, SPREAD * mean_ms)))

    def _said(self, model: str) -> Prediction:
        world, name = self._world, model.removeprefix(EDGE)
        found = world.recording.prediction(name, self._photograph, "top1", world.temperatures.get(name, 1.0))
        return Prediction(model, found.probabilities, found.confidence)
