"""A device with its edge server on a virtual clock: the daemon's own driver, recorded answers, times that are drawn."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from calibration.papers.mdinference.networks import Network, RecordedTimes
from jetsel.base.config import Config
from jetsel.base.errors import JetselError
from jetsel.calibrate.record.recording import Recording
from jetsel.edge.messages import FEWEST_TIMES, LATE_S, REFRESH_S, AskResult, Remote, State
from jetsel.edge.models import OVERHEAD_BYTES, EdgeRunner, edge_runners, remote_models
from jetsel.edge.runner import Delivery, EdgePayload
from jetsel.edge.server import EdgeServer
from jetsel.engines import CallerLimiter, Output
from jetsel.policies.policy import Decision, Policy, Prediction
from jetsel.runtime import Driver, ModelQueue, RequestRun, Timers
from jetsel.runtime.forecast import RELATIVE_DEVIATION, outlook
from jetsel.runtime.model_queue import SentImage
from jetsel.runtime.request_run import Request
from jetsel.runtime.shared_runs import Timer
from jetsel.wire import Classify
from jetsel.zoo import Family

SPREAD = 0.1  # of a model's mean: the standard deviation of its times, which a recording does not have
APART_S = 0.4  # between the starts of two requests, unless the first takes longer


@dataclass(frozen=True, eq=False)
class World:
    """What requests meet.

    here: the models of the device, cheapest first. config: of the edge server and its models; None: there is none.
    sizes: the bytes of each image, (n,). sides_px: its width and height. around_ms: what a request takes besides its
    models. edge_factor: of the recorded times, what the edge server takes.
    """

    recording: Recording
    family: Family
    here: Sequence[str]
    temperatures: Mapping[str, float]
    config: Config | None
    network: Network
    sizes: Sequence[int]
    sides_px: Sequence[tuple[int, int]]
    around_ms: float
    edge_factor: float = 1.0


class Clock(Timers):
    """Virtual time in seconds, which code takes none of. To advance it calls the timers that are due."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._due: list[tuple[float, int, Timer]] = []

    def now(self) -> float:
        """Return the time."""
        return self._now_s

    def call_at(self, time_s: float, call: Callable[[], None]) -> Timer:
        """See Timers."""
        timer = Timer(call)
        heapq.heappush(self._due, (time_s, next(self._numbers), timer))
        return timer

    def advance(self, until_s: float | None = None) -> None:
        """Go on to this time, or to the next timer."""
        until_s = self._due[0][0] if until_s is None else until_s
        while self._due and self._due[0][0] <= until_s:
            time_s, _, timer = heapq.heappop(self._due)
            self._now_s = max(self._now_s, time_s)
            if timer.callback is not None:
                timer.callback()
        self._now_s = max(self._now_s, until_s)


class SimulatedDevice:
    """A device that answers one request after the other. chance: of all times and choices."""

    def __init__(self, world: World, chance: np.random.Generator) -> None:
        """Reach the edge server, if there is one."""
        self.world, self.chance = world, chance
        self.image = 0  # that the request is about
        self.ways_ms = self._ways()
        self.way_ms = next(self.ways_ms)  # T_nw of the request, before its bytes
        self.clock = Clock()
        self.clock.wake = self._carry
        self._ended_s = 0.0
        queues = {
            name: ModelQueue(name, _RecordedEngine(name, self), world.temperatures.get(name, 1.0))
            for name in world.here
        }
        for name, queue in queues.items():
            cost_ms = world.recording.costs_ms[name]
            queue.prior_ms = (cost_ms, RELATIVE_DEVIATION * cost_ms)
        if world.config is not None:
            edge = _RecordedEdge(self, remote_models(world.config, world.family))
            for name, runner in edge_runners(world.config, world.family, edge).items():
                runs = _RecordedRunner(**{**vars(runner), "now": self.clock.now})
                queues[name] = ModelQueue(name, None, runner=runs)
        self._driver = Driver(queues, 1, self.clock.now, self.clock)

    def answer(self, policy: Policy, image: int, deadline_ms: float) -> tuple[Prediction | None, float]:
        """Return what the policy answers about an image of the recording, None if it fails, and the time in ms."""
        world, clock = self.world, self.clock
        self.image, self.way_ms = image, next(self.ways_ms)
        begun_s = clock.now()
        deadline_s = begun_s + deadline_ms / 1e3
        clock.advance(begun_s + world.around_ms / 1e3)
        size_px, file_bytes, queues = world.sides_px[image], world.sizes[image], self._driver.queues
        ahead = outlook(queues, deadline_s, clock.now(), SentImage(size_px, file_bytes))
        run = RequestRun(None, None, ahead, policy=policy, request=_Request(deadline_s, (*size_px, file_bytes)))
        self._driver.start(run)
        self._carry(run)
        while run.outcome is None:
            clock.advance()
        took_ms = (self._ended_s - begun_s) * 1e3
        clock.advance(max(clock.now(), begun_s + APART_S))
        if isinstance(run.outcome, Decision):
            return run.outcome.prediction, took_ms
        if not isinstance(run.outcome, JetselError):
            raise run.outcome
        return None, took_ms

    def _carry(self, *runs: RequestRun) -> None:
        """Carry runs on, as a thread of the daemon does that has them, or that is roused."""
        if self._driver.continue_runs(*runs):
            self._ended_s = self.clock.now()

    def _ways(self) -> Iterator[float]:
        """Return what the network takes, request after request."""
        while True:
            yield from map(float, self.world.network.draw(len(self.world.sizes), self.chance))

    def draw_ms(self, mean_ms: float) -> float:
        """Return the time of one run of a model."""
        return max(0.0, float(self.chance.normal(mean_ms, SPREAD * mean_ms)))


@dataclass(eq=False)
class _Request:
    """A request about an image of the recording. size: its width, height and bytes. See Request."""

    message, is_counted, has_promise, photograph, file = Classify(1, ""), True, False, None, None
    deadline_s: float
    size: tuple[int, int, int]

    def model_input(self, _: str) -> NDArray[np.float32]:
        """Return nothing: the engines read the recording."""
        return np.empty((1, 0, 0, 0), np.float32)


class _RecordedEngine:
    """A model of the device that answers from the recording. See Engine."""

    concurrency, max_batch, unavailable = 1, None, None
    is_restarting, is_stale, restart_s = False, False, 0.0

    def __init__(self, name: str, device: SimulatedDevice) -> None:
        self.name, self.caller_limiter, self._device = name, CallerLimiter(), device

    def infer(self, *_: NDArray[np.float32]) -> Output:
        """Let the time of a run pass."""
        recording, image, clock = self._device.world.recording, self._device.image, self._device.clock
        clock.advance(clock.now() + self._device.draw_ms(recording.costs_ms[self.name]) / 1e3)
        number = recording.models.index(self.name)
        embedding = None if number or recording.embeddings is None else recording.embeddings[[image]].astype(np.float32)
        return Output(recording.logits[number][[image]].astype(np.float32), embedding, None)

    def close(self) -> None:
        """Hold nothing."""


class _RecordedRunner(EdgeRunner):
    """A model of the edge server that is sent as many bytes as an image has."""

    def _payload(self, request: Request) -> EdgePayload:
        assert isinstance(request, _Request)
        return EdgePayload(bytes(self.bytes_for(*request.size)))


class _RecordedEdge:
    """An edge server that answers from the recording. See jetsel.edge.runner.EdgeClient."""

    def __init__(self, device: SimulatedDevice, models: Mapping[str, Remote]) -> None:
        """Be connected to: each model is tried."""
        self._device, self.models = device, models
        self._server = EdgeServer("edge", models, device.clock.now)
        self._numbers = itertools.count()
        self._under_way: dict[int, Delivery] = {}
        self._answered_s = dict.fromkeys(models, 0.0)
        tries = math.ceil(FEWEST_TIMES / len(models))
        self._look([self._tried(name, models[name].probe) for name in models for _ in range(tries)], is_new=True)

    def server(self, model: str) -> EdgeServer:  # noqa: ARG002  # there is one
        """See jetsel.edge.runner.EdgeClient."""
        return self._server

    def unavailable(self, model: str) -> str | None:
        """See jetsel.edge.runner.EdgeClient."""
        return self._server.unavailable(model)

    def ask(self, model: str, photograph: EdgePayload, patience_ms: float | None, deliver: Delivery) -> int:
        """See jetsel.edge.runner.EdgeClient; the answer comes once network and server have taken their times."""
        world, number = self._device.world, next(self._numbers)
        seen = world.recording.prediction(model, self._device.image, world.temperatures.get(model, 1.0))
        are_logits = self.models[model].output == "logits"
        values = (np.log(seen.probabilities) if are_logits else seen.probabilities).astype("<f4").tobytes()
        result = structs.replace(self._result(model, len(photograph.payload), number), values=values)
        self._under_way[number] = deliver
        if patience_ms is None or result.total_ms < patience_ms + LATE_S * 1e3:
            due_s = self._device.clock.now() + result.total_ms / 1e3
            self._device.clock.call_at(due_s, partial(self._arrive, model, result))
        return number

    def cancel(self, number: int) -> None:
        """See jetsel.edge.runner.EdgeClient; the answer is still read, and tells how long it took."""
        self._under_way.pop(number, None)

    def _arrive(self, model: str, result: AskResult) -> None:
        self._answered_s[model] = self._device.clock.now()
        self._server.learn(model, result)
        if (deliver := self._under_way.pop(result.number, None)) is not None:
            deliver(result)

    def _look(self, tried: list[tuple[str, AskResult]], *, is_new: bool = False) -> None:
        """Take in a look at the server; the next tries the models that nobody asks."""
        self._server.update(State(0, None, {}, tried, self._way_ms(0), is_new))
        self._device.clock.call_at(self._device.clock.now() + REFRESH_S, self._look_again)

    def _look_again(self) -> None:
        since_s = self._device.clock.now() - REFRESH_S
        quiet = [name for name, at_s in self._answered_s.items() if at_s < since_s]
        self._look([self._tried(name, self.models[name].small_probe) for name in quiet])

    def _tried(self, model: str, probe: bytes) -> tuple[str, AskResult]:
        self._device.way_ms = next(self._device.ways_ms)
        return model, self._result(model, len(probe))

    def _result(self, model: str, payload_bytes: int, number: int = -1) -> AskResult:
        """Return what a request with this number of bytes takes now."""
        sent_bytes, world = payload_bytes + OVERHEAD_BYTES, self._device.world
        server_ms = self._device.draw_ms(world.edge_factor * world.recording.costs_ms[model])
        total_ms = self._way_ms(sent_bytes) + server_ms
        return AskResult(number, b"", None, sent_bytes, OVERHEAD_BYTES, total_ms, server_ms)

    def _way_ms(self, sent_bytes: int) -> float:
        network = self._device.world.network
        extra_ms = network.extra_ms(sent_bytes) if isinstance(network, RecordedTimes) else 0.0
        return max(0.0, self._device.way_ms + extra_ms)
