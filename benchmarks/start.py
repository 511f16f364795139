"""How long `jetsel serve` takes to be ready and what it holds then. `python -m benchmarks.start`."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.conditions import conditions
from benchmarks.memory import memory_mb
from benchmarks.photographs import photographs
from benchmarks.report import table
from benchmarks.servers import daemon
from jetsel.client import Client

READY_S = 1.0
RESIDENT_MB = 170.0


def main() -> None:
    """Start the daemon several times, then ask the last one for some photographs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--starts", type=int, default=10, help="after one that fills the caches; default: 10")
    parser.add_argument("--requests", type=int, default=200, help="before memory is read again; default: 200")
    parser.add_argument("--photos", type=Path, help="a folder or tar archive of JPEG files to send")
    args = parser.parse_args()
    shown = photographs(args.photos)
    print("# Start and memory of the daemon\n")
    print("\n".join(conditions()), flush=True)
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        folder = Path(name)
        times_s = [_start_s(folder) for _ in range(args.starts + 1)]
        first_s, later_s = times_s[0], times_s[1:]
        with daemon(folder) as server, Client(server.address) as client:
            idle = memory_mb(server.pids[0])
            for number in range(args.requests):
                client.classify(shown.files[number % len(shown.files)])
            used = memory_mb(server.pids[0])
    print(f"- ready: its status says so, asked every 5 ms from the start of the process; {args.starts} starts\n")
    rows = [
        ["ready, median of the starts, s", f"{READY_S}", f"{statistics.median(later_s):.2f}"],
        ["ready, worst of the starts, s", f"{READY_S}", f"{max(later_s):.2f}"],
        ["ready, the start before them (caches may be cold), s", "", f"{first_s:.2f}"],
        ["resident when ready and idle (VmRSS), MB", f"{RESIDENT_MB:.0f}", f"{idle['VmRSS']:.0f}"],
        ["of that its own share (PSS), MB", "", f"{idle['Pss']:.0f}"],
        [f"resident after {args.requests} requests (VmRSS), MB", f"{RESIDENT_MB:.0f}", f"{used['VmRSS']:.0f}"],
        ["of that its own share (PSS), MB", "", f"{used['Pss']:.0f}"],
        ["most it ever held (VmHWM), MB", "", f"{used['VmHWM']:.0f}"],
    ]
    print("\n".join(table(("what", "at most", "measured"), rows)))


def _start_s(folder: Path) -> float:
    with daemon(folder) as server:
        return server.ready_after_s


if __name__ == "__main__":
    main()
