"""What is known of one edge: whether it can be asked, what the way there takes, and what came of asking."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from jetsel.base.estimate import Estimate
from jetsel.edge.link import Link
from jetsel.edge.messages import Remote, Result, State
from jetsel.wire.status import EdgeModelStatus, EdgeServerStatus


class Server:
    """One edge. Any thread may read; the edge's own thread takes in what is heard of it.

    compared: what a usual photograph takes as a whole, there and back, with the first model: the same for each edge.
    reason: why it cannot be asked, None where it can. lead: how often in a row it was faster than the one in use.
    """

    def __init__(self, url: str, models: Mapping[str, Remote], now: Callable[[], float] = time.monotonic) -> None:
        """models: by their names here."""
        self.url = url
        self.link = Link()
        self.times = {model: Estimate() for model in models}  # of the server's own work
        self.answers_bytes: dict[str, int] = {}  # by model, of its last answer
        self.refused: dict[str, str] = {}
        self.reason: str | None = f"{url} is being connected to"
        self.compared = Estimate()
        self.lead = 0
        self.runs: Counter[str] = Counter()  # by how they ended
        self.sent_bytes = self.received_bytes = 0
        self._remotes = models
        self._now = now

    def unavailable(self, model: str) -> str | None:
        """Why this model cannot be asked here now, None where it can."""
        return self.reason or self.refused.get(model)

    def look_at(self, state: State) -> None:
        """Take in what a look at it showed."""
        if state.is_new:
            self.link, self.compared = Link(), Estimate()
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

    def count(self, result: Result, *, is_late: bool) -> None:
        """Count a run. is_late: its answer was not waited for any more."""
        self.sent_bytes += result.sent_bytes
        self.received_bytes += result.received_bytes
        failed = "cancelled" if is_late else "failed"
        self.runs[failed if result.values is None else "late" if is_late else "answered"] += 1

    def learn(self, model: str, result: Result) -> None:
        """Take in what one answer took; where the server does not say its part, the path's usual time is taken off."""
        self.answers_bytes[model] = result.received_bytes
        server_ms = result.server_ms
        if server_ms is None:
            known = self.link.estimate(0)
            server_ms = max(0.0, result.total_ms - (0.0 if known is None else known[0]))
        else:
            self.link.observe(result.sent_bytes, max(0.0, result.total_ms - server_ms))
        self.times[model].add(server_ms, self._now())

    def status(self) -> EdgeServerStatus:
        """Return how it fares."""
        network_ms, spread_ms = self.link.estimate(self.link.usual_bytes) or (None, None)
        return EdgeServerStatus(self.url, self.reason, network_ms, spread_ms, dict(self.runs))

    def model_status(self, model: str) -> EdgeModelStatus:
        """Return how one of its models fares."""
        known = self.times[model].at(self._now()) or (None, None)
        return EdgeModelStatus(model, self._remotes[model].name, self.unavailable(model), *known)
