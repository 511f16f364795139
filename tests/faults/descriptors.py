"""More clients than a process may have open files: who is in stays served, the rest wait, and the daemon goes on.

python -m tests.faults.descriptors --clients 1500 --limit 1024
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import zmq

from benchmarks.conditions import conditions
from benchmarks.report import table
from tests.faults.watch import held
from tests.system.daemons import Daemon, Peer, drawn, encoded, launch, wait_until_ready
from tests.system.hosts import host_of

LIMIT_S = 60.0
QUIET_S = 1.5  # without one more client let in: all are who can be
LOOK_S = 2.0  # how long the full daemon's processor time is watched
HOSTED = '[models]\nonly = ["xs", "s"]\nbackends = { xs = "onnxruntime-hosted" }\n'


@dataclass
class Crowded:
    """What a crowd showed. wrong: what must not happen and did."""

    let_in: int = 0
    open_files: int = 0
    cpu_share: float = 0.0
    reload_s: float = 0.0
    host_s: float = 0.0
    let_in_later: int = 0
    open_after: int = 0
    wrong: list[str] = field(default_factory=list)


class Crowd:
    """Clients that connect at once, send one `status` each, and stay."""

    def __init__(self, endpoint: str, clients: int) -> None:
        self._context = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, clients + 8)
        self._waiting: dict[zmq.Socket[bytes], int] = {}
        self.served: list[zmq.Socket[bytes]] = []
        self._poller = zmq.Poller()
        for number in range(clients):
            client = self._context.socket(zmq.DEALER)
            client.setsockopt(zmq.LINGER, 0)
            client.connect(endpoint)
            client.send(json.dumps({"v": 1, "id": str(number), "type": "status"}).encode())
            self._waiting[client] = number
            self._poller.register(client, zmq.POLLIN)

    def read(self, quiet_s: float, most: int) -> int:
        """Take replies until none came for so long, or all are served; return how many clients are served now."""
        last_s = time.monotonic()
        while len(self.served) < most and time.monotonic() - last_s < quiet_s:
            for client, _ in self._poller.poll(50):
                client.recv_multipart()
                self._poller.unregister(client)
                del self._waiting[client]
                self.served.append(client)
                last_s = time.monotonic()
        return len(self.served)

    def leave(self) -> None:
        """Have those that are in hang up."""
        for client in self.served:
            client.close()
        self.served = []

    def close(self) -> None:
        """Have everybody hang up."""
        self.leave()
        for client in self._waiting:
            client.close()
        self._context.term()


def crowd(daemon: Daemon, endpoint: str, clients: int, *, is_hosted: bool) -> Crowded:
    """Send a crowd to a ready daemon, and have it reload and replace its engine host meanwhile."""
    found, photo = Crowded(), encoded(drawn())
    pid = daemon.process.pid
    early = Peer(daemon.endpoint)
    early.classify(photo)
    before = held(pid).descriptors
    arriving = Crowd(endpoint, clients)
    try:
        found.let_in = arriving.read(QUIET_S, clients)
        found.open_files = held(pid).descriptors
        found.cpu_share = _cpu_share(pid)
        found.reload_s = _time(lambda: early.ask({"type": "reload"})["type"] == "reloaded", found, "a reload")
        if is_hosted:
            os.kill(host_of(daemon), signal.SIGKILL)
            found.host_s = _time(lambda: early.classify(photo, model="xs")["type"] == "answer", found, "a new host")
        if early.classify(photo)["type"] != "answer":
            found.wrong.append("a client that was there before was not answered")
        arriving.leave()
        wanted = clients - found.let_in
        found.let_in_later = arriving.read(LIMIT_S, min(wanted, found.let_in))
        if found.let_in_later < min(wanted, found.let_in):
            found.wrong.append(f"of {wanted} that waited, {found.let_in_later} were let in when others had left")
    finally:
        arriving.close()
    found.open_after = _settled(pid, before)
    if early.classify(photo)["type"] != "answer":
        found.wrong.append("after the crowd nobody was answered")
    early.close()
    return found


def _time(do: Callable[[], bool], found: Crowded, what: str) -> float:
    """Try until it is done; return the seconds that took."""
    began_s = time.monotonic()
    while not do():
        if time.monotonic() - began_s > LIMIT_S:
            found.wrong.append(f"{what} was not had within {LIMIT_S:g} s")
            break
        time.sleep(0.05)
    return time.monotonic() - began_s


def _cpu_share(pid: int) -> float:
    """How much of one core the process takes now (proc(5), stat: utime and stime)."""

    def used_s() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before_s, began_s = used_s(), time.monotonic()
    time.sleep(LOOK_S)
    return (used_s() - before_s) / (time.monotonic() - began_s)


def _settled(pid: int, wanted: int) -> int:
    give_up_s = time.monotonic() + LIMIT_S
    while held(pid).descriptors > wanted and time.monotonic() < give_up_s:
        time.sleep(0.1)
    return held(pid).descriptors


def main() -> None:
    """Crowd a daemon and print what it showed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.descriptors", description=__doc__)
    parser.add_argument("--clients", type=int, default=1500)
    parser.add_argument("--limit", type=int, default=1024, help="of open files, soft and hard; default: 1024")
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("# More clients than open files\n")
    print("\n".join(conditions()))
    print(f"- {args.clients} clients, at most {args.limit} open files (before: soft {soft}, hard {hard})\n")
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        config = f"[server]\nmax_clients = 10000\n{HOSTED}"
        daemon = launch(Path(name), config, prefix=("prlimit", f"--nofile={args.limit}:{args.limit}"))
        try:
            wait_until_ready(daemon)
            result = crowd(daemon, daemon.endpoint, args.clients, is_hosted=True)
        finally:
            daemon.process.terminate()
            ended = daemon.process.wait(60)
    if ended:
        result.wrong.append(f"the daemon ended with {ended}")
    rows = {
        "let in at first": lambda r: str(r.let_in),
        "open files of the daemon then": lambda r: str(r.open_files),
        "its share of a core while the others wait": lambda r: f"{100 * r.cpu_share:.0f} %",
        "a reload meanwhile, s": lambda r: f"{r.reload_s:.2f}",
        "its engine host killed, the next answer after, s": lambda r: f"{r.host_s:.2f}",
        "let in when those had left": lambda r: str(r.let_in_later),
        "open files when all had left": lambda r: str(r.open_after),
        "wrong": lambda r: "; ".join(r.wrong) or "nothing",
    }
    print("\n".join(table(("what", "seen"), [[name, show(result)] for name, show in rows.items()])))
    raise SystemExit(bool(result.wrong))


if __name__ == "__main__":
    main()
