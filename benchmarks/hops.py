"""How many steps one photograph takes through the daemon. `python -m benchmarks.hops`."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.conditions import conditions
from benchmarks.photographs import photographs
from benchmarks.report import table
from benchmarks.servers import daemon
from jetsel.client import Client

MOST_CALLS, MOST_LOCKS = 90, 12
APART_S = 0.1  # longer than the pause by which the traced daemon tells requests apart
TRACED = Path(__file__).with_name("traced_daemon.py")


def main() -> None:
    """Count calls, files and locks in a traced daemon, wake-ups in one that is not; print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hops", description=__doc__)
    parser.add_argument("--model", default="s", help="that is pinned; default: s")
    parser.add_argument("--requests", type=int, default=40, help="one after the other; default: 40")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of another version")
    parser.add_argument("--list", action="store_true", help="also each function and lock with its number of uses")
    args = parser.parse_args()
    photograph = photographs(None).files[0]
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        folder = Path(name)
        notes = folder / "notes.json"
        with daemon(folder, python=args.python, command=[str(TRACED), str(notes)]) as server:
            _ask(server.address, args.model, photograph, args.requests)
        traced = json.loads(notes.read_text(encoding="utf-8"))[-args.requests :]
        with daemon(folder, python=args.python) as server:
            _ask(server.address, args.model, photograph, 5)
            before = _switches(server.pids[0])
            _ask(server.address, args.model, photograph, args.requests)
            switches = (_switches(server.pids[0]) - before) / args.requests
    print("# The steps of one photograph\n")
    print("\n".join(conditions()))
    print(f"- model {args.model} pinned, one client, {args.requests} requests one at a time; medians")
    print("- from the daemon's first read of the request to its last write of the reply; wake-ups: voluntary context")
    print("  switches of all its threads a request, without tracing\n")

    def median(counts: list[int]) -> str:
        return f"{statistics.median(counts):.0f}"

    rows = [
        ["calls of Python functions of jetsel", f"{MOST_CALLS}", median([len(one["calls"]) for one in traced])],
        ["functions called", "", median([len(set(one["calls"])) for one in traced])],
        ["files", "", median([len({call.split(":")[0] for call in one["calls"]}) for one in traced])],
        ["locks taken", f"{MOST_LOCKS}", median([len(one["locks"]) for one in traced])],
        ["wake-ups", "", f"{switches:.1f}"],
    ]
    print("\n".join(table(("what", "at most", "measured"), rows)))
    if args.list:
        for kind in ("calls", "locks"):
            print(f"\n{kind} of one request\n")
            for where, times in Counter(traced[len(traced) // 2][kind]).most_common():
                print(f"- {times} {where.partition('jetsel/')[2] or where}")


def _ask(address: str, model: str, photograph: bytes, requests: int) -> None:
    with Client(address) as client:
        for _ in range(requests):
            client.classify(photograph, model=model)
            time.sleep(APART_S)


def _switches(pid: int) -> int:
    """The voluntary context switches of all threads of a process so far (proc(5))."""
    found = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
        found += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return found


if __name__ == "__main__":
    main()
