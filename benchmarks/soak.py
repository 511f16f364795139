"""Mixed requests from sixteen clients, good and bad: `python -m benchmarks.soak --requests 200000`, half an hour.

Each is to be answered once and rightly, while the daemon's memory stays flat. What is sent stands in
tests/faults/soak.py, which a test runs with two thousand.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.conditions import conditions
from benchmarks.report import table
from tests.faults.soak import soak
from tests.system.daemons import Peer, serving

MOST_GROWTH = 0.02


def main() -> None:
    """Soak a daemon and print what it showed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--clients", type=int, default=16)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name, serving(Path(name)) as daemon:
        found = soak(daemon, args.requests, args.clients)
        peer = Peer(daemon.endpoint)
        lost = peer.status()["lost_replies"]
        peer.close()
        ended = daemon.stop()
    (before, after), (early_mb, late_mb) = found.held, tenths_mb(found.memory_mb)
    growth = late_mb / early_mb - 1
    print("\n".join(conditions()))
    print(f"- {args.clients} clients, {found.took_s:.0f} s, {found.answered / found.took_s:.0f} requests/s\n")
    rows = [
        ["requests asked, answered once", f"{found.asked:,}, {found.answered:,}"],
        ["wrong, doubled or missing; lost replies", f"{len(found.wrong)}; {lost}"],
        ["resident, least of the second and the last tenth, MB", f"{early_mb:.1f}, {late_mb:.1f}"],
        ["resident, median of all, MB", f"{statistics.median(found.memory_mb):.1f}"],
        ["growth", f"{growth:+.2%}"],
        ["descriptors before, after", f"{before.descriptors}, {after.descriptors}"],
        ["threads before, after", f"{before.threads}, {after.threads}"],
        ["exit status after SIGTERM", str(ended)],
    ]
    print("\n".join(table(("what", "measured"), rows)))
    print()
    print("\n".join(table(("kind: outcome", "requests"), [[k, f"{v:,}"] for k, v in sorted(found.outcomes.items())])))
    print("\n".join(f"- {line}" for line in found.wrong[:20]))
    raise SystemExit(bool(found.wrong or ended or growth > MOST_GROWTH or found.asked != found.answered))


def tenths_mb(memory_mb: Sequence[float]) -> tuple[float, float]:
    """Return the least of the second tenth, since what comes before is warming up, and of the last one.

    The least, since what large photographs hold comes and goes, and has medians of tenths differ by 5 % either way.
    """
    size = max(1, len(memory_mb) // 10)
    return min(memory_mb[size : 2 * size + 1]), min(memory_mb[-size:])


if __name__ == "__main__":
    main()
