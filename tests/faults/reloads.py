"""Reload five hundred times under load, with good files and wrong ones: no valid request fails, and none waits long.

python -m tests.faults.reloads --reloads 500
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.conditions import conditions
from benchmarks.report import table
from tests.faults.upsets import UPSETS, Disk
from tests.faults.watch import held
from tests.system.daemons import Daemon, Peer, launch, wait_until_ready

APART_S = 0.15  # between two reloads, so that requests are seen without one
WITHOUT_NICE = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
PAUSE_MS = 5.0  # the target; told and not judged: other work on the machine is in it


@dataclass
class Reloaded:
    """What came of it. windows: begin and end of each reload; asked: begin, end of each request, in seconds."""

    windows: list[tuple[float, float]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)  # of reloads
    wrong: list[str] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    asked: list[tuple[float, float]] = field(default_factory=list)
    descriptors: tuple[int, int] = (0, 0)
    resident_mb: tuple[float, float] = (0.0, 0.0)

    def latencies_ms(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the latencies of the requests that were in flight during a reload, and of the others."""
        asked = np.array(self.asked)
        during = np.zeros(len(asked), bool)
        for begin_s, end_s in self.windows:
            during |= (asked[:, 0] < end_s) & (asked[:, 1] > begin_s)
        took_ms = (asked[:, 1] - asked[:, 0]) * 1e3
        return took_ms[during], took_ms[~during]


def reload_under_load(folder: Path, reloads: int, prefix: Sequence[str] = ()) -> Reloaded:
    """Launch a daemon on files of its own, ask it without pause, and reload it again and again.

    prefix: the command that starts it.
    """
    found = Reloaded()
    disk = Disk(folder)
    daemon = launch(folder, disk.text, prefix=prefix)
    try:
        wait_until_ready(daemon)
        disk.launched(daemon.config)
        before = held(daemon.process.pid)
        asker = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.asker", daemon.endpoint], stdout=subprocess.PIPE, text=True
        )
        time.sleep(2 * APART_S)
        for number in range(reloads):
            _upset(found, daemon, disk, number)
        asker.send_signal(signal.SIGTERM)
        out, _ = asker.communicate(timeout=60)
        for line in out.splitlines():
            begin_s, end_s, outcome = line.split()
            found.asked.append((float(begin_s), float(end_s)))
            found.requests[outcome] += 1
        after = held(daemon.process.pid)
        found.descriptors = before.descriptors, after.descriptors
        found.resident_mb = before.resident_mb, after.resident_mb
    finally:
        daemon.process.kill()
        daemon.process.wait()
    return found


def _upset(found: Reloaded, daemon: Daemon, disk: Disk, number: int) -> None:
    """Change the files, reload, and put them right again."""
    upset = UPSETS[number % len(UPSETS)]
    upset.do(disk)
    admin = Peer(daemon.endpoint)
    began = time.monotonic()
    reply = admin.ask({"type": "reload"})
    found.windows.append((began, time.monotonic()))
    outcome = str(reply.get("code", reply["type"]))
    found.outcomes[f"{upset.name}: {outcome}"] += 1
    if (outcome == "reloaded") != upset.taken:
        found.wrong.append(f"{upset.name}: {reply}")
    if number % len(UPSETS) == len(UPSETS) - 1:  # once in each turn by the signal, whose end is not told
        os.kill(daemon.process.pid, signal.SIGHUP)
    time.sleep(APART_S)
    disk.restore()
    admin.close()


def main() -> None:
    """Reload, and print how requests and reloads fared."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.reloads", description=__doc__)
    parser.add_argument("--reloads", type=int, default=500)
    parser.add_argument(
        "--without-nice",
        action="store_true",
        help="take from the daemon what root and the unit may and a person who runs it may not: to lower nice values",
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        found = reload_under_load(Path(name), args.reloads, WITHOUT_NICE if args.without_nice else ())
    during, apart = found.latencies_ms()
    print("\n".join(conditions()))
    print(f"- {args.reloads} reloads, {len(found.asked):,} requests of two clients, one at a time each\n")
    took_ms = np.array([(end_s - begin_s) * 1e3 for begin_s, end_s in found.windows])
    rows = [[f"requests: {outcome}", f"{count:,}"] for outcome, count in sorted(found.requests.items())]
    for share in (0.5, 0.99, 1.0):
        name = "worst" if share == 1 else f"p{100 * share:.0f}"
        with_one, without = float(np.quantile(during, share)), float(np.quantile(apart, share))
        rows.append(
            [
                f"latency {name} during a reload, apart from one, difference, ms",
                f"{with_one:.1f}, {without:.1f}, {with_one - without:+.1f}",
            ]
        )
    pause_ms = float(np.quantile(during, 0.99) - np.quantile(apart, 0.99))
    rows += [
        ["pause: p99 during a reload less p99 apart from one, and the target, ms", f"{pause_ms:.1f}, {PAUSE_MS:g}"],
        ["a reload took, median and worst, ms", f"{np.median(took_ms):.0f}, {took_ms.max():.0f}"],
        ["descriptors before, after", f"{found.descriptors[0]}, {found.descriptors[1]}"],
        ["resident before, after, MB", f"{found.resident_mb[0]:.1f}, {found.resident_mb[1]:.1f}"],
    ]
    print("\n".join(table(("what", "measured"), rows)))
    print()
    print("\n".join(table(("reload: outcome", "times"), [[k, str(v)] for k, v in sorted(found.outcomes.items())])))
    for line in found.wrong:
        print(f"- wrong: {line}")
    raise SystemExit(bool(found.wrong or set(found.requests) - {"ok"}))


if __name__ == "__main__":
    main()
