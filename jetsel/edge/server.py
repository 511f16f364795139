"""Estimates of the times of an edge server and its network, and the choice of the fastest server (MODI, Figure 1)."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from jetsel.base.events import event
from jetsel.edge.messages import FEWEST_TIMES, AskResult, Remote, State
from jetsel.runtime.model_times import Estimate
from jetsel.wire.status import EdgeModelStatus, EdgeServerStatus

DECAY = 0.95  # weight that old times keep at each new one: about the last twenty decide
LEAST_SPREAD = 0.1  # relative spread of the sizes that an estimate of the slope needs, so that it is not noise


@dataclass
class LinkEstimate:
    """Estimates network time T_nw = latency + bytes / bandwidth: a line through measured times, recent ones weigh more.

    T_nw is a request's total time minus the server's own time (MDInference, section IV-D). Any thread may call.
    """

    _moments: list[float] = field(default_factory=lambda: [0.0] * 5)  # sums of weight, size, time, size^2, size * time
    _squares: float = 0.0  # mean squared error of earlier estimates
    _slowest: tuple[float, float] = (0.0, 0.0)  # its bytes and ms, used while few times are known
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def observe(self, sent_bytes: int, network_ms: float) -> None:
        """Add one measured network time of a request with this many bytes."""
        estimate = self.estimate(sent_bytes)
        with self._lock:
            self._count += 1
            new = (1.0, float(sent_bytes), network_ms, float(sent_bytes) ** 2, sent_bytes * network_ms)
            self._moments = [DECAY * old + added for old, added in zip(self._moments, new, strict=True)]
            if network_ms > self._slowest[1]:
                self._slowest = (float(sent_bytes), network_ms)
            if estimate is not None and self._count > FEWEST_TIMES:
                self._squares = DECAY * self._squares + (1 - DECAY) * (network_ms - estimate[0]) ** 2

    @property
    def usual_bytes(self) -> int:
        """Recent mean size of a request, 0 before the first."""
        with self._lock:
            return round(self._moments[1] / self._moments[0]) if self._count else 0

    def estimate(self, sent_bytes: int) -> tuple[float, float] | None:
        """Return mean and standard deviation of T_nw in ms for this number of bytes, None if nothing was measured.

        With fewer than FEWEST_TIMES it is twice the slowest, more for more bytes: the paper's conservative 2 x T_input.
        """
        with self._lock:
            if not self._count:
                return None
            if self._count < FEWEST_TIMES:
                size, slowest_ms = self._slowest
                return 2 * slowest_ms * max(1.0, sent_bytes / max(size, 1.0)), 0.0
            weight, size, time_ms, square, product = self._moments
            squares = self._squares
        mean, mean_ms = size / weight, time_ms / weight
        spread = max(0.0, square / weight - mean**2)
        slope = 0.0
        if spread > (LEAST_SPREAD * mean) ** 2:
            slope = max(0.0, (product / weight - mean * mean_ms) / spread)
        return max(0.0, mean_ms + slope * (sent_bytes - mean)), float(np.sqrt(squares))


class EdgeServer:
    """State and estimated times of one edge server. Any thread may read; only the edge thread changes it.

    link: network time. times: model -> the server's own time. answers_bytes: model -> size of its last answer. refused:
    model -> why it cannot be used. reason: why the server is unavailable, None if available. usual_time: total time of
    the same image with the same model on each server. wins_in_a_row: checks in which it was faster than the one in use.
    """

    def __init__(self, url: str, models: Mapping[str, Remote], now: Callable[[], float] = time.monotonic) -> None:
        self.url = url
        self.link = LinkEstimate()
        self.times = {model: Estimate() for model in models}
        self.answers_bytes: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.reason: str | None = f"connecting to {url}"
        self.usual_time = Estimate()
        self.wins_in_a_row = 0
        self.runs: Counter[str] = Counter()  # outcome ("answered", "late", "failed", "cancelled") -> number
        self.sent_bytes = self.received_bytes = 0
        self._remotes = models
        self._now = now

    def unavailable(self, model: str) -> str | None:
        """Return why the model cannot run on this server now, None if it can."""
        return self.reason or self.refused.get(model)

    def update(self, state: State) -> None:
        """Update state and estimates with the result of a check."""
        if state.is_new:
            self.link, self.usual_time = LinkEstimate(), Estimate()
        if state.check_ms is not None:
            self.link.observe(0, state.check_ms)
        for model, result in state.probed:
            self.learn(model, result)
            if model == next(iter(self.times)):
                self.usual_time.add(result.total_ms, self._now())
        answered = {model for model, _ in state.probed}
        kept = {} if state.is_new else {model: why for model, why in self.refused.items() if model not in answered}
        self.refused = kept | state.refused
        self.reason = state.reason

    def count(self, result: AskResult, *, is_late: bool) -> None:
        """Count a run, with its bytes. is_late: True if nobody waited for its answer any more."""
        self.sent_bytes += result.sent_bytes
        self.received_bytes += result.received_bytes
        failed = "cancelled" if is_late else "failed"
        self.runs[failed if result.values is None else "late" if is_late else "answered"] += 1

    def learn(self, model: str, result: AskResult) -> None:
        """Update the estimates with an answer; a missing server time is the total minus the network time."""
        self.answers_bytes[model] = result.received_bytes
        server_ms = result.server_ms
        if server_ms is None:
            estimate = self.link.estimate(0)
            server_ms = max(0.0, result.total_ms - (0.0 if estimate is None else estimate[0]))
        else:
            self.link.observe(result.sent_bytes, max(0.0, result.total_ms - server_ms))
        self.times[model].add(server_ms, self._now())

    def status(self) -> EdgeServerStatus:
        """Return the state for `jetsel status`."""
        network_ms, _ = self.link.estimate(self.link.usual_bytes) or (None, None)
        return EdgeServerStatus(self.url, self.reason, network_ms, dict(self.runs))

    def model_status(self, model: str) -> EdgeModelStatus:
        """Return the state of one of its models for `jetsel status`."""
        mean_ms, _ = self.times[model].mean_and_sd_ms(self._now()) or (None, None)
        return EdgeModelStatus(model, self._remotes[model].name, self.unavailable(model), mean_ms)


log = logging.getLogger("jetsel.models")

FASTER = 0.8  # share of the time of the server in use that another must undercut: switching is not for small gains
CHECKS = 2  # number of checks in a row in which another server must be faster


class EdgeServers:
    """The edge servers, and the choice of the one in use. Any thread may read; only the edge thread may `reconsider`.

    servers: all. current: the one in use. handovers: number of changes of it.
    """

    def __init__(self, servers: Sequence[EdgeServer]) -> None:
        """servers: at least one; the first is in use until it fails and another is available."""
        self.servers = servers
        self.current = servers[0]
        self.handovers = 0

    def servers_for(self, model: str, excluded: Collection[EdgeServer] = ()) -> list[EdgeServer]:
        """Return the servers that can run a model, without the excluded ones: the one in use first, then by speed."""
        able = [server for server in self.servers if server not in excluded and server.unavailable(model) is None]
        return sorted(able, key=lambda server: (server is not self.current, _expected_ms(server)))

    def reconsider(self, server: EdgeServer) -> None:
        """After a check of `server`: switch to it if it was faster often enough, or to any if the current one fails."""
        if self.current.reason is not None:
            available = [other for other in self.servers if other.reason is None]
            if available:
                self._hand_over(min(available, key=_expected_ms), self.current.reason)
        elif server is not self.current:
            is_faster = server.reason is None and _expected_ms(server) < FASTER * _expected_ms(self.current)
            server.wins_in_a_row = server.wins_in_a_row + 1 if is_faster else 0
            if server.wins_in_a_row >= CHECKS:
                took = f"it takes {_expected_ms(server):.1f} ms and not {_expected_ms(self.current):.1f} ms"
                self._hand_over(server, took)

    def _hand_over(self, server: EdgeServer, why: str) -> None:
        fields = event("edge-handover", url=server.url, left=self.current.url)
        log.info("requests now go to edge server %s instead of %s: %s", server.url, self.current.url, why, extra=fields)
        self.current, self.handovers = server, self.handovers + 1
        for each_server in self.servers:
            each_server.wins_in_a_row = 0


def _expected_ms(server: EdgeServer) -> float:
    """Return the expected total time of an image of usual size in ms; infinite if unknown."""
    estimate = server.usual_time.mean_and_sd_ms(time.monotonic())
    return math.inf if estimate is None else estimate[0]
