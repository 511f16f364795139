"""One model measured in turns: bare loop, daemon and its rivals, one after the other, round after round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.bare import BareLoop
from benchmarks.load import Generator, Job
from benchmarks.servers import Server
from benchmarks.window import Window

WARM_UP = 10  # requests before each window; every client sends at least one of them


@dataclass
class Measured:
    """The windows of one model by (what, how many at once): `bare` by threads, the servers by clients; one a round."""

    model: str
    windows: dict[tuple[str, int], list[Window]] = field(default_factory=dict)

    def add(self, what: str, at_once: int, window: Window) -> None:
        """Keep one round's window."""
        self.windows.setdefault((what, at_once), []).append(window)

    def of(self, what: str, at_once: int) -> list[Window]:
        """Return the windows of all rounds, oldest first."""
        return self.windows[what, at_once]


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    requests: int  # in each window
    rounds: int
    clients: Sequence[int]
    threads: int  # of the bare loop that throughput is compared with


def measure(model: str, plan: Plan, bare: BareLoop, servers: dict[str, Server], generator: Generator) -> Measured:
    """Measure one model; within a round what is compared stands next to each other, since machines change with time."""
    measured = Measured(model)
    for _ in range(plan.rounds):
        measured.add("bare", 1, bare.measure(plan.requests, 1, WARM_UP))
        for count, clients in enumerate(plan.clients):
            if count == 1:
                measured.add("bare", plan.threads, bare.measure(plan.requests, plan.threads, WARM_UP))
            for name, server in servers.items():
                job = Job(server.address, model, clients, plan.requests, WARM_UP, server.pids)
                measured.add(name, clients, generator.measure(job))
    return measured
