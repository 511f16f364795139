"""Times of an edge server and its network, and the choice of the fastest server (MODI, Figure 1)."""

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
from jetsel.edge.messages import FEWEST, AskResult, Remote, State
from jetsel.runtime.model_times import Estimate
from jetsel.wire.status import EdgeModelStatus, EdgeServerStatus

KEEPS = 0.95  # weight that old times keep at each new one: about the last twenty decide
LEAST_SPREAD = 0.1  # relative spread of the sizes from which a slope is estimated, so that it is not noise


@dataclass
class LinkEstimate:
    """Network time T_nw = latency + bytes / bandwidth, a weighted line fitted to the measured times.

    T_nw is a request's total time minus the server's own time (MDInference, section IV-D). Any thread may call.
    """

    _moments: list[float] = field(default_factory=lambda: [0.0] * 5)  # sums of weight, size, time, size^2, size * time
    _squares: float = 0.0  # mean squared error of earlier estimates
    _largest: tuple[float, float] = (0.0, 0.0)  # bytes and time of the slowest, used while few times are known
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def observe(self, sent_bytes: int, network_ms: float) -> None:
        """Add one measured time."""
        estimate = self.estimate(sent_bytes)
        with self._lock:
            self._seen += 1
            new = (1.0, float(sent_bytes), network_ms, float(sent_bytes) ** 2, sent_bytes * network_ms)
            self._moments = [KEEPS * old + one for old, one in zip(self._moments, new, strict=True)]
            if network_ms > self._largest[1]:
                self._largest = (float(sent_bytes), network_ms)
            if estimate is not None and self._seen > FEWEST:
                self._squares = KEEPS * self._squares + (1 - KEEPS) * (network_ms - estimate[0]) ** 2

    @property
    def usual_bytes(self) -> int:
        """The recent mean size, 0 before the first."""
        with self._lock:
            return round(self._moments[1] / self._moments[0]) if self._seen else 0

    def estimate(self, sent_bytes: int) -> tuple[float, float] | None:
        """Return mean and standard deviation of T_nw in ms for this number of bytes, None if nothing was measured.

        With fewer than FEWEST times it is twice the slowest one, more for more bytes: the paper's conservative 2 x
        T_input.
        """
        with self._lock:
            if not self._seen:
                return None
            if self._seen < FEWEST:
                size, slowest_ms = self._largest
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
    """One edge server. Any thread may read; only the edge thread changes it.

    compared: total time of a usual image with the first model, which is the same for each server. reason: why it is
    unavailable, None if it is not. lead: how often in a row it was faster than the one in use.
    """

    def __init__(self, url: str, models: Mapping[str, Remote], now: Callable[[], float] = time.monotonic) -> None:
        """models: by local name."""
        self.url = url
        self.link = LinkEstimate()
        self.times = {model: Estimate() for model in models}  # the server's own times
        self.answers_bytes: dict[str, int] = {}  # by model, size of the last answer
        self.refused: dict[str, str] = {}
        self.reason: str | None = f"connecting to {url}"
        self.compared = Estimate()
        self.lead = 0
        self.runs: Counter[str] = Counter()  # by outcome
        self.sent_bytes = self.received_bytes = 0
        self._remotes = models
        self._now = now

    def unavailable(self, model: str) -> str | None:
        """Return why the model cannot run on this server now, None if it can."""
        return self.reason or self.refused.get(model)

    def look_at(self, state: State) -> None:
        """Update the state with the result of a check."""
        if state.is_new:
            self.link, self.compared = LinkEstimate(), Estimate()
        if state.look_ms is not None:
            self.link.observe(0, state.look_ms)
        for model, result in state.probed:
            self.learn(model, result)
            if model == next(iter(self.times)):
                self.compared.add(result.total_ms, self._now())
        answered = {model for model, _ in state.probed}
        still = {} if state.is_new else {one: why for one, why in self.refused.items() if one not in answered}
        self.refused = still | state.refused
        self.reason = state.reason

    def count(self, result: AskResult, *, is_late: bool) -> None:
        """Count a run. is_late: nobody waited for its answer any more."""
        self.sent_bytes += result.sent_bytes
        self.received_bytes += result.received_bytes
        failed = "cancelled" if is_late else "failed"
        self.runs[failed if result.values is None else "late" if is_late else "answered"] += 1

    def learn(self, model: str, result: AskResult) -> None:
        """Update the estimates with an answer; without the server's own time, it is the total minus the network's."""
        self.answers_bytes[model] = result.received_bytes
        server_ms = result.server_ms
        if server_ms is None:
            estimate = self.link.estimate(0)
            server_ms = max(0.0, result.total_ms - (0.0 if estimate is None else estimate[0]))
        else:
            self.link.observe(result.sent_bytes, max(0.0, result.total_ms - server_ms))
        self.times[model].add(server_ms, self._now())

    def status(self) -> EdgeServerStatus:
        """Return the server's state."""
        network_ms, _ = self.link.estimate(self.link.usual_bytes) or (None, None)
        return EdgeServerStatus(self.url, self.reason, network_ms, dict(self.runs))

    def model_status(self, model: str) -> EdgeModelStatus:
        """Return the state of one of its models."""
        mean_ms, _ = self.times[model].mean_and_sd_ms(self._now()) or (None, None)
        return EdgeModelStatus(model, self._remotes[model].name, self.unavailable(model), mean_ms)


log = logging.getLogger("jetsel.models")

FASTER = 0.8  # of the time of the one in use: a smaller gain is no reason to switch
LOOKS = 2  # checks in a row in which another must be faster


class EdgeServers:
    """The edge servers, and the one in use. Any thread may read; only the edge thread calls `saw`.

    handovers: number of changes of the one in use.
    """

    def __init__(self, servers: Sequence[EdgeServer]) -> None:
        """servers: at least one; the first is in use until it fails and another is available."""
        self.servers = servers
        self.used = servers[0]
        self.handovers = 0

    def able(self, model: str, but: Collection[EdgeServer] = ()) -> list[EdgeServer]:
        """Return the servers that can run a model: the one in use first, then by speed. but: servers to leave out."""
        able = [one for one in self.servers if one not in but and one.unavailable(model) is None]
        return sorted(able, key=lambda one: (one is not self.used, _expected_ms(one)))

    def saw(self, server: EdgeServer) -> None:
        """Switch if the one in use is unavailable, or if `server` was faster in enough checks."""
        if self.used.reason is not None:
            there = [one for one in self.servers if one.reason is None]
            if there:
                self._hand_over(min(there, key=_expected_ms), self.used.reason)
        elif server is not self.used:
            is_faster = server.reason is None and _expected_ms(server) < FASTER * _expected_ms(self.used)
            server.lead = server.lead + 1 if is_faster else 0
            if server.lead >= LOOKS:
                took = f"it takes {_expected_ms(server):.1f} ms and not {_expected_ms(self.used):.1f} ms"
                self._hand_over(server, took)

    def _hand_over(self, server: EdgeServer, why: str) -> None:
        fields = event("edge-handover", url=server.url, left=self.used.url)
        log.info("requests now go to edge server %s instead of %s: %s", server.url, self.used.url, why, extra=fields)
        self.used, self.handovers = server, self.handovers + 1
        for one in self.servers:
            one.lead = 0


def _expected_ms(server: EdgeServer) -> float:
    """Return the total time of a usual image there in ms; infinite if unknown."""
    times = server.compared.mean_and_sd_ms(time.monotonic())
    return math.inf if times is None else times[0]
