"""What the engine host adds to a run, holds in memory, and takes to come back. `python -m benchmarks.hosted`."""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.bare_host import BareHost
from benchmarks.conditions import conditions
from benchmarks.memory import memory_mb
from benchmarks.report import table
from jetsel.base.errors import JetselError
from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines import Backends, Engine
from jetsel.engines.hosted import HostedBackend, HostedEngine
from jetsel.engines.hosting.residents import Rules
from tests.contract.tiny import matrix_model

SIDE_PX = 224
CLASSES = 2  # so that the model itself is nearly nothing beside its input of 602 kB
CLIENTS = 8


def main() -> None:
    """Measure side by side in one run, and print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosted", description=__doc__)
    parser.add_argument("--runs", type=int, default=4000, help="of each side; default: 4000")
    parser.add_argument("--requests", type=int, default=10_000, help="for the memory; default: 10000")
    parser.add_argument("--kills", type=int, default=10, help="of the host under load; default: 10")
    args = parser.parse_args()
    print("# The engine host\n")
    print("\n".join(conditions()), flush=True)
    backends = Backends()
    with tempfile.TemporaryDirectory() as folder:
        weights = _model(Path(folder))
        bare = BareHost(weights, _input().shape)  # first: it forks, and threads do not survive that
        plain, hosted = (
            backends.open(name, weights, concurrency=2, threads=1) for name in ("onnxruntime", "onnxruntime-hosted")
        )
        backend = backends.get("onnxruntime-hosted")
        assert isinstance(backend, HostedBackend)
        assert isinstance(hosted, HostedEngine)
        _added(plain, hosted, backend, bare, args.runs)
        bare.close()
        _memory(hosted, backend, args.requests)
        backends.close()
        _recovery(weights, args.kills)


def _model(folder: Path) -> Weights:
    draw = np.random.default_rng(0)
    matrix = draw.normal(0, 0.01, (3 * SIDE_PX * SIDE_PX, CLASSES)).astype(np.float32)
    path = folder / "passing.onnx"
    path.write_bytes(matrix_model(matrix, embedding=False, side_px=SIDE_PX))
    return Weights("passing", path, hashlib.sha256(path.read_bytes()).hexdigest(), SIDE_PX, SIDE_PX, CLASSES)


def _input() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(1, 3, SIDE_PX, SIDE_PX)).astype(np.float32)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def _added(plain: Engine, hosted: HostedEngine, backend: HostedBackend, bare: BareHost, runs: int) -> None:
    """Run both in turns, with two more: the least that any two processes can do, and a ping, which passes no input."""
    batch = _input()
    process = backend.supervisor.process
    assert process is not None
    sides: dict[str, Callable[[], object]] = {
        "hosted": lambda: hosted.infer(batch),
        "a bare pair of processes": lambda: bare.infer(batch),
        "a ping": lambda: backend.supervisor.ask(process, "ping", {}, 5.0, "measuring"),
    }
    times: dict[str, list[float]] = {name: [] for name in ["in process", *sides]}
    for number in range(runs + runs // 10):
        for name, side in sides.items():
            # A run in process before each: the other core has idled as long, and the caches are as cold.
            in_process_ms, took_ms = _timed(lambda: plain.infer(batch)), _timed(side)
            if number >= runs // 10:  # the first are warm-up
                times["in process"].append(in_process_ms)
                times[name].append(took_ms)
    print(f"\n## An input of 3 x {SIDE_PX} x {SIDE_PX} float32, {runs} runs of each in turns\n")
    shares = (0.5, 0.95, 0.99)
    rows = [[name, *(f"{_percentile(took, share):.3f}" for share in shares)] for name, took in times.items()]
    for name, what in (("hosted", "added by hosting"), ("a bare pair of processes", "added by the bare pair")):
        added = (_percentile(times[name], share) - _percentile(times["in process"], share) for share in shares)
        rows.append([what, *(f"{value:+.3f}" for value in added)])
    print("\n".join(table(["ms", "p50", "p95", "p99"], rows)), flush=True)


def _memory(hosted: HostedEngine, backend: HostedBackend, requests: int) -> None:
    """Compare what both processes hold after a tenth of the requests and after all."""
    process = backend.supervisor.process
    assert process is not None
    pids = {"daemon's side": os.getpid(), "host": process.pid}
    batch = _input()
    for _ in range(requests // 10):
        hosted.infer(batch)
    early = {name: memory_mb(pid)["VmRSS"] for name, pid in pids.items()}
    for _ in range(requests - requests // 10):
        hosted.infer(batch)
    late = {name: memory_mb(pid)["VmRSS"] for name, pid in pids.items()}
    print(f"\n## Resident memory after {requests // 10} and {requests} requests\n")
    rows = [[n, f"{early[n]:.1f}", f"{late[n]:.1f}", f"{late[n] / early[n] - 1:+.2%}"] for n in pids]
    print("\n".join(table(["MB", f"{requests // 10}", f"{requests}", "growth"], rows)), flush=True)


def _recovery(weights: Weights, kills: int) -> None:
    """Kill the host again and again while clients ask, and time the way back to the first good answer.

    Without the pauses of the back-off, which so many deaths in so short a time would earn.
    """
    rules = Rules(first_pause_s=0.0)
    backend = HostedBackend("onnxruntime", HostSettings(engines="/nonexistent"), lambda: None, rules)
    hosted = backend.open(weights, concurrency=2, threads=1)
    over = threading.Event()
    answered = [0.0]
    batch = _input()

    def ask() -> None:
        while not over.is_set():
            try:
                hosted.infer(batch)
                answered[0] = time.perf_counter()
            except JetselError:  # noqa: PERF203  # it is away
                time.sleep(0.002)

    clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    back_s: list[float] = []
    for _ in range(kills):
        time.sleep(0.5)
        process = backend.supervisor.process
        if process is None:
            break
        killed = time.perf_counter()
        os.kill(process.pid, signal.SIGKILL)
        while backend.supervisor.process in (None, process) or answered[0] < killed:
            time.sleep(0.001)
        # An answer may have been under way at the kill: the first that counts came from the next host.
        began = time.perf_counter()
        while answered[0] < began:
            time.sleep(0.001)
        back_s.append(answered[0] - killed)
    over.set()
    for client in clients:
        client.join()
    backend.close()
    print(f"\n## From kill -9 under {CLIENTS} clients to the first good answer, {len(back_s)} kills\n")
    rows = [[f"{min(back_s):.2f}", f"{statistics.median(back_s):.2f}", f"{max(back_s):.2f}"]]
    print("\n".join(table(["least, s", "median, s", "most, s"], rows)))
    print(f"\nThe last start took {backend.supervisor.restart_s:.2f} s of that, the model's load included.")


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


if __name__ == "__main__":
    main()
