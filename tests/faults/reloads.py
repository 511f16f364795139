"""Reload under load, with good files and wrong ones: no valid request fails, and none waits long.

python -m tests.faults.reloads --reloads 100
"""

import argparse
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.conditions import conditions
from benchmarks.report import table
from jetsel.base.errors import JetselError
from jetsel.client import Client
from tests.faults.upsets import UPSETS, Disk
from tests.processes import Held, held
from tests.system.daemons import Daemon, Peer, drawn, encoded, serving
from tests.waiting import until

APART_S = 0.15  # between two reloads, so that requests are seen without one
ASKED: tuple[dict[str, str], ...] = ({}, {"model": "xs"})  # what each client's requests name


@dataclass
class Reloaded:
    """What came of it. windows: begin and end of each reload; asked: begin, end of each request, in seconds."""

    windows: list[tuple[float, float]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)  # of reloads
    wrong: list[str] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    asked: list[tuple[float, float]] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)  # before and after

    def latencies_ms(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the latencies of the requests that were in flight during a reload, and of the others."""
        asked = np.array(self.asked)
        during = np.zeros(len(asked), bool)
        for begin_s, end_s in self.windows:
            during |= (asked[:, 0] < end_s) & (asked[:, 1] > begin_s)
        took_ms = (asked[:, 1] - asked[:, 0]) * 1e3
        return took_ms[during], took_ms[~during]


def reload_under_load(folder: Path, reloads: int) -> Reloaded:
    """Launch a daemon on files of its own, ask it without pause, and reload it again and again."""
    found, disk, stop = Reloaded(), Disk(folder), threading.Event()
    with serving(folder, disk.text) as daemon:
        disk.launched(daemon.config)
        found.held.append(held(daemon.process.pid))
        with ThreadPoolExecutor() as pool:
            askers = [pool.submit(_ask, daemon.endpoint, fields, stop, found) for fields in ASKED]
            try:
                stop.wait(2 * APART_S)
                for number in range(reloads):
                    _upset(found, daemon, disk, number)
                    stop.wait(APART_S)
                    disk.restore()
            finally:
                stop.set()
        for asker in askers:
            asker.result()
        until(lambda: held(daemon.process.pid).descriptors <= found.held[0].descriptors)
        found.held.append(held(daemon.process.pid))
    return found


def _ask(endpoint: str, fields: dict[str, str], stop: threading.Event, found: Reloaded) -> None:
    """Ask one thing after another, never twice: what is refused counts, whether or not it may be tried again."""
    images = [encoded(drawn(number)) for number in range(8)]
    with Client(endpoint, retry=False, timeout_ms=60_000) as client:
        while not stop.is_set():
            began_s, outcome = time.monotonic(), "ok"
            try:
                client.classify(images[len(found.asked) % len(images)], **fields)  # type: ignore[arg-type]
            except JetselError as error:
                outcome = error.code
            found.asked.append((began_s, time.monotonic()))
            found.requests[outcome] += 1


def _upset(found: Reloaded, daemon: Daemon, disk: Disk, number: int) -> None:
    """Change the files and reload."""
    upset = UPSETS[number % len(UPSETS)]
    upset.do(disk)
    admin = Peer(daemon.endpoint)
    began_s = time.monotonic()
    reply = admin.ask({"type": "reload"})
    admin.close()
    found.windows.append((began_s, time.monotonic()))
    outcome = str(reply.get("code", reply["type"]))
    found.outcomes[f"{upset.name}: {outcome}"] += 1
    if (outcome == "reloaded") != upset.taken:
        found.wrong.append(f"{upset.name}: {reply}")
    if number % len(UPSETS) == len(UPSETS) - 1:  # once in each turn by the signal, whose end is not told
        os.kill(daemon.process.pid, signal.SIGHUP)


def main() -> None:
    """Reload, and print how requests and reloads fared."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.reloads", description=__doc__)
    parser.add_argument("--reloads", type=int, default=100)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        found = reload_under_load(Path(name), args.reloads)
    during, apart = found.latencies_ms()
    print("\n".join(conditions()))
    print(f"- {args.reloads} reloads, {len(found.asked):,} requests of two clients, one at a time each\n")
    rows = [[f"requests: {outcome}", f"{count:,}"] for outcome, count in sorted(found.requests.items())]
    for name, share in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0)):
        ms = f"{np.quantile(during, share):.1f}, {np.quantile(apart, share):.1f}"
        rows.append([f"latency {name} during a reload, apart from one, ms", ms])
    took_ms = np.array([(end_s - begin_s) * 1e3 for begin_s, end_s in found.windows])
    before, after = found.held
    rows += [
        ["a reload took, median and worst, ms", f"{np.median(took_ms):.0f}, {took_ms.max():.0f}"],
        ["descriptors before, after", f"{before.descriptors}, {after.descriptors}"],
        ["resident before, after, MB", f"{before.resident_mb:.1f}, {after.resident_mb:.1f}"],
    ]
    print("\n".join(table(("what", "measured"), rows)))
    print()
    print("\n".join(table(("reload: outcome", "times"), [[k, str(v)] for k, v in sorted(found.outcomes.items())])))
    print("\n".join(f"- wrong: {line}" for line in found.wrong))
    raise SystemExit(bool(found.wrong or set(found.requests) - {"ok"}))


if __name__ == "__main__":
    main()
