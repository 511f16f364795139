"""What deadlines and an edge will give, by replaying the policy of deadlines on a recording in simulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jetsel.calibrate.recording import Recording
from jetsel.edge.link import FEWEST, Link
from jetsel.edge.networks import Network, Recorded
from jetsel.errors import JetselError
from jetsel.policies.deadline import EDGE, REDUCED, Deadline
from jetsel.policies.policy import Decision, Evidence, Outlook, OutOfTime, Prediction, Run
from jetsel.runtime.shared_runs import SETTLED_S

SPREAD = 0.1  # of a model's mean: the standard deviation of its times, which a recording does not have

PROBES = (1_000, 40_000)  # bytes, of what the daemon tries an edge with
LOOKED_AT = 50  # requests: about as often as it is tried again


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

    sizes: the bytes of each photograph, (n,). reduced_bytes: of each reduced, (n,), by the model that is sent it.
    accuracy: of the edge's models, also on reduced photographs: as much as that is less, right answers turn wrong.
    around_ms: what a request takes besides its models.
    """

    recording: Recording
    temperatures: Mapping[str, float]
    costs_ms: Mapping[str, float]
    network: Network
    sizes: Sequence[int]
    reduced_bytes: Mapping[str, Sequence[int]]
    accuracy: Mapping[str, float]
    around_ms: float


def predict(policy: Deadline, world: World, deadline_ms: float, seed: int) -> Predicted:
    """Replay the policy on every photograph of the recording, one request after the other."""
    chance = np.random.default_rng(seed)
    photographs = chance.permutation(len(world.recording.classes))
    network_ms = world.network.draw(len(photographs) + FEWEST, chance)
    link = Link()
    for number, way_ms in enumerate(network_ms[:FEWEST]):  # the edge is tried at connection
        link.observe(PROBES[number % 2], travels_ms(world.network, float(way_ms), PROBES[number % 2]))
    rows = np.zeros((len(photographs), 3))
    for place, photograph in enumerate(photographs):
        way_ms = float(network_ms[FEWEST + place])
        request = _Request(world, int(photograph), way_ms, deadline_ms, chance)
        if place % LOOKED_AT == 0:  # one that nobody asks is looked at
            link.observe(PROBES[0], travels_ms(world.network, way_ms, PROBES[0]))
        rows[place] = request.carry(policy, link)
    right, from_edge, took_ms = rows.T
    on_time = took_ms <= deadline_ms
    shares = (right.mean(), on_time.mean(), (right * on_time).mean(), from_edge.mean(), took_ms.mean())
    return Predicted(*(float(share) for share in shares))


def travels_ms(network: Network, drawn_ms: float, sent_bytes: int) -> float:
    """Return what the way takes for so many bytes; a network that is no recording knows nothing of them."""
    return max(0.0, drawn_ms + (network.extra_ms(sent_bytes) if isinstance(network, Recorded) else 0.0))


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
        steps = policy(Evidence(None, None, self._outlook(link)))
        seen: Prediction | None = None
        try:
            asked = next(steps)
            while True:
                for model in asked.models:
                    if model.startswith(EDGE):
                        link.observe(self._bytes(model), self._travels_ms(model))
                found = self._run(asked)
                seen = found[-1] if found else seen
                asked = steps.send(found) if found else steps.throw(OutOfTime())
        except StopIteration as stop:
            decision: Decision = stop.value
            seen = decision.seen
        except (OutOfTime, JetselError):
            pass
        if seen is None:
            return False, False, self._now_ms
        return self._is_right(seen), seen.model.startswith(EDGE), self._now_ms

    def _outlook(self, link: Link) -> Outlook:
        """What the daemon would know: see jetsel.edge.outlook."""
        network_ms = link.estimate(self._world.sizes[self._photograph])
        known = {}
        for name, ms in self._world.costs_ms.items():
            way_ms = link.estimate(self._bytes(name)) if name.startswith(EDGE) else None
            saved_ms = 0.0 if way_ms is None or network_ms is None else network_ms[0] - way_ms[0]
            known[name] = ms - saved_ms, SPREAD * ms
        left_ms = self._end_ms + SETTLED_S * 1e3 - self._now_ms
        return Outlook(left_ms, known, network_ms, self._chance.random())

    def _run(self, asked: Run) -> tuple[Prediction, ...]:
        """Let the models run, and the clock with them; return what came."""
        away = {m: self._now_ms + self._travels_ms(m) + self._takes_ms(m) for m in asked.models if m.startswith(EDGE)}
        begin_ms = self._now_ms if asked.held_ms is None else max(self._now_ms, self._end_ms - asked.held_ms)
        here = {m: begin_ms + self._takes_ms(m) for m in asked.models if m not in away}
        if asked.held_ms is not None and min(away.values(), default=np.inf) <= begin_ms:
            here = {}
        ends = here | away
        if asked.until == "deadline":
            self._now_ms = min(ends.get(asked.models[-1], np.inf), max(self._end_ms, self._now_ms))
        else:
            last_ms = max(ends.values())
            if last_ms > self._end_ms and not away and self._now_ms > self._world.around_ms:
                return ()  # the driver does not begin what cannot end in time, once there is an answer
            self._now_ms = last_ms
        return tuple(self._said(model) for model in asked.models if ends.get(model, np.inf) <= self._now_ms)

    def _bytes(self, model: str) -> int:
        whole = self._world.sizes[self._photograph]
        reduced = self._world.reduced_bytes.get(model)
        return whole if reduced is None else min(whole, reduced[self._photograph])

    def _travels_ms(self, model: str) -> float:
        return travels_ms(self._world.network, self._way_ms, self._bytes(model))

    def _takes_ms(self, model: str) -> float:
        mean_ms = self._world.costs_ms[model]
        return max(0.0, float(self._chance.normal(mean_ms, SPREAD * mean_ms)))

    def _said(self, model: str) -> Prediction:
        world, name = self._world, model.removeprefix(EDGE).partition(REDUCED)[0]
        found = world.recording.prediction(name, self._photograph, "top1", world.temperatures.get(name, 1.0))
        return Prediction(model, found.probabilities, found.confidence)

    def _is_right(self, seen: Prediction) -> bool:
        accuracy, whole = self._world.accuracy, seen.model.partition(REDUCED)[0]
        stays = self._chance.random() < (accuracy[seen.model] / accuracy[whole] if REDUCED in seen.model else 1.0)
        return stays and seen.label == self._world.recording.classes[self._photograph]
