"""HTTP through the gateway beside the daemon's own socket, and mosec's HTTP. `python -m benchmarks.gateway`."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

from benchmarks.conditions import conditions
from benchmarks.load import Generator, Job, generator
from benchmarks.photographs import photographs
from benchmarks.report import FIGURES, HEADINGS, interval, table
from benchmarks.servers import Server, daemon, gateway, has_mosec, mosec
from benchmarks.window import CpuClock, Window

CLIENTS = (1, 4, 16)
WARM_UP = 20
SCRAPES, SCRAPED_EVERY_S = 100, 5


def main() -> None:
    """Measure in rounds, in which all take turns, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument("--photos", type=Path, help="a folder or tar archive of JPEG files to send as they are")
    parser.add_argument("--model", default="s", help="of the starter family; default: s")
    parser.add_argument("--requests", type=int, default=300, help="in each window; default: 300")
    parser.add_argument("--rounds", type=int, default=11, help="default: 11")
    args = parser.parse_args()
    shown = photographs(args.photos)
    print("# The gateway beside the daemon's socket\n")
    print("\n".join((*conditions(), f"- photographs: {shown}; model {args.model}, asked for by POST /classify")))
    with tempfile.TemporaryDirectory(prefix="jetsel-") as place, ExitStack() as running:
        folder = Path(place)
        servers = {"socket": running.enter_context(daemon(folder))}
        opened = running.enter_context(gateway(folder, servers["socket"]))
        servers["gateway"] = replace(opened, address=f"{opened.address}classify?model={args.model}")
        if has_mosec():
            workers = len(os.sched_getaffinity(0))
            servers["mosec"] = running.enter_context(mosec(folder, args.model, workers, shown.files[0]))
        asking = running.enter_context(generator(shown.files, folder))
        found = _measured(servers, asking, args.model, args.requests, args.rounds)
        scrape_ms = _scrape_cpu_ms(opened)
    _print(found, list(servers))
    share = scrape_ms / (1e3 * SCRAPED_EVERY_S)
    print(
        f"\nA scrape of /metrics takes {scrape_ms:.1f} ms of processor time in both: {share:.2%} of a core at one each "
        f"{SCRAPED_EVERY_S} s"
    )


def _measured(
    servers: dict[str, Server], asking: Generator, model: str, requests: int, rounds: int
) -> dict[tuple[str, int], list[Window]]:
    found: dict[tuple[str, int], list[Window]] = {}
    for _ in range(rounds):
        for clients in CLIENTS:
            for name, server in servers.items():
                job = Job(server.address, model, clients, requests, WARM_UP, server.pids)
                found.setdefault((name, clients), []).append(asking.measure(job))
    return found


def _scrape_cpu_ms(opened: Server) -> float:
    """Processor time of one scrape, of daemon and gateway together."""
    clock = CpuClock(opened.pids)
    before_s = clock.read_s()
    for _ in range(SCRAPES):
        with urlopen(f"{opened.address}metrics") as reply:
            reply.read()
    return (clock.read_s() - before_s) * 1e3 / SCRAPES


def _print(found: dict[tuple[str, int], list[Window]], servers: list[str]) -> None:
    def row(name: str, clients: int) -> list[str]:
        values = [statistics.median(map(figure, found[name, clients])) for figure in FIGURES]
        return [
            f"{name}, {clients} client{'s' * (clients > 1)}",
            *(f"{value:.3g}" if value < 100 else f"{value:.0f}" for value in values),
        ]

    def compared(clients: int, other: str, figure: Callable[[Window, Window], float], form: str) -> str:
        pairs = zip(found["gateway", clients], found[other, clients], strict=True)
        return interval([figure(ours, theirs) for ours, theirs in pairs], form)

    print("\nThe gateway's processor time holds the daemon's.\n")
    print("\n".join(table(("median of the rounds", *HEADINGS), [row(*key) for key in found])))
    for other in servers:
        if other == "gateway":
            continue
        rows = [
            [
                f"{clients} client{'s' * (clients > 1)}",
                compared(clients, other, lambda a, b: a.p50_ms - b.p50_ms, "+.2f"),
                compared(clients, other, lambda a, b: a.server_cpu_ms / b.server_cpu_ms, ".2f"),
                compared(clients, other, lambda a, b: a.requests_per_s / b.requests_per_s, ".2f"),
            ]
            for clients in CLIENTS
        ]
        headings = (
            f"gateway beside {other}",
            "p50, ms more",
            "processor time of a request, times",
            "requests/s, times",
        )
        print("\nMedian of the rounds (95 % interval by bootstrap)\n")
        print("\n".join(table(headings, rows)))


if __name__ == "__main__":
    main()
