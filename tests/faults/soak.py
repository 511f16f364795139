"""A million requests from sixteen clients, valid, invalid, huge and slow: each is answered once, memory stays flat.

python -m tests.faults.soak --requests 1000000
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions
from benchmarks.report import table
from tests.faults.watch import Held, descriptors, held
from tests.system.daemons import Daemon, Peer, launch, wait_until_ready

PROCESSES = 2  # of clients
LOOK_S = 0.25
SETTLE_S = 3.0  # after the last client has left, before descriptors are counted


@dataclass
class Soaked:
    """What a soak showed. memory: (share of the requests answered, MB) in the order of time."""

    asked: int = 0
    answered: int = 0
    slowly: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    before: Held | None = None
    after: Held | None = None
    left_open: list[str] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def growth(self) -> float:
        """The median of the last tenth over that of the second tenth, less one: what came before is warming up."""
        return self.median_mb(0.9, 1.01) / self.median_mb(0.1, 0.2) - 1

    def median_mb(self, begin: float, end: float) -> float:
        """The median of what was resident between these shares of the requests."""
        return statistics.median(mb for share, mb in self.memory if begin <= share < end)


def soak(daemon: Daemon, requests: int, clients: int) -> Soaked:
    """Let the clients loose on a ready daemon, and watch it."""
    found = Soaked()
    peer = Peer(daemon.endpoint)
    peer.status()
    pid = daemon.process.pid
    found.before, open_before = held(pid), Counter(descriptors(pid))
    began = time.monotonic()
    soakers = [_start(daemon, requests // PROCESSES, clients // PROCESSES, seed) for seed in range(PROCESSES)]
    progress = [0] * PROCESSES
    while any(soaker.poll() is None for soaker in soakers):
        time.sleep(LOOK_S)
        progress = [_progress(soaker, seen) for soaker, seen in zip(soakers, progress, strict=True)]
        found.memory.append((sum(progress) / requests, held(pid).resident_mb))
    found.took_s = time.monotonic() - began
    for soaker in soakers:
        _add(found, soaker)
    time.sleep(SETTLE_S)
    found.after, open_after = held(pid), Counter(descriptors(pid))
    found.left_open = sorted((open_after - open_before).elements())
    peer.close()
    return found


def _start(daemon: Daemon, requests: int, clients: int, seed: int) -> subprocess.Popen[str]:
    words = [daemon.endpoint, "--requests", str(requests), "--clients", str(clients), "--seed", str(seed)]
    with daemon.log.with_name(f"soaker-{seed}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.soaker", *words], stdout=subprocess.PIPE, stderr=log, text=True
        )
    process.args = str(daemon.log.with_name(f"soaker-{seed}.log"))
    return process


def _progress(soaker: subprocess.Popen[str], before: int) -> int:
    """How many replies a process of clients has had, as its log's last line says."""
    lines = Path(str(soaker.args)).read_text(encoding="utf-8").split()
    return int(lines[-1]) if lines and lines[-1].isdigit() else before


def _add(found: Soaked, soaker: subprocess.Popen[str]) -> None:
    out, _ = soaker.communicate()
    if soaker.returncode != 0:
        found.wrong.append(f"a process of clients ended with {soaker.returncode}: {Path(str(soaker.args)).read_text()}")
        return
    told: dict[str, Any] = json.loads(out)
    found.asked += told["asked"]
    found.answered += told["answered"]
    found.slowly += told["slowly"]
    found.outcomes += Counter(told["outcomes"])
    found.wrong += told["wrong"]


def main() -> None:
    """Soak a daemon and print what it showed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=16)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        daemon = launch(Path(name))
        try:
            wait_until_ready(daemon)
            found = soak(daemon, args.requests, args.clients)
            status = Peer(daemon.endpoint).status()
        finally:
            daemon.process.terminate()
            ended = daemon.process.wait(60)
        _print(found, status, args.clients, ended)
    raise SystemExit(bool(found.wrong or found.left_open or found.growth > 0.02 or found.asked != found.answered))


def _print(found: Soaked, status: dict[str, Any], clients: int, ended: int) -> None:
    assert found.before is not None
    assert found.after is not None
    print("\n".join(conditions()))
    print(f"- {clients} clients, {found.took_s:.0f} s, {found.answered / found.took_s:.0f} requests/s\n")
    rows = [
        ["requests asked", f"{found.asked:,}"],
        ["replies, each to a request that had none yet", f"{found.answered:,}"],
        ["of them written slowly, in pieces of 512 bytes", f"{found.slowly:,}"],
        ["wrong, doubled or missing", str(len(found.wrong))],
        ["replies that the daemon counts as lost", str(status["lost_replies"])],
        ["resident, median of the second tenth, MB", f"{found.median_mb(0.1, 0.2):.1f}"],
        ["resident, median of the last tenth, MB", f"{found.median_mb(0.9, 1.01):.1f}"],
        ["growth", f"{found.growth:+.2%}"],
        ["most resident after the first tenth, MB", f"{max(mb for share, mb in found.memory if share >= 0.1):.1f}"],
        ["descriptors before, after", f"{found.before.descriptors}, {found.after.descriptors}"],
        ["threads before, after", f"{found.before.threads}, {found.after.threads}"],
        ["exit status after SIGTERM", str(ended)],
    ]
    print("\n".join(table(("what", "measured"), rows)))
    print()
    print("\n".join(table(("kind: outcome", "requests"), [[k, f"{v:,}"] for k, v in sorted(found.outcomes.items())])))
    for line in [*found.wrong, *(f"left open: {what}" for what in found.left_open)]:
        print(f"- {line}")


if __name__ == "__main__":
    main()
