"""The load generator, one process for all measurements: closed loops over ZeroMQ or HTTP. `python -m benchmarks.load`.

It reads the photographs' file, then one job in JSON a line, and answers each with one window in JSON.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import zmq

from benchmarks.channels import Channel, HttpChannel, ZmqChannel
from benchmarks.window import CpuClock, Window

T = TypeVar("T")
ROOT = Path(__file__).parents[1]
PATIENCE_MS = 60_000


class Job(msgspec.Struct, frozen=True):
    """What to measure. address: ipc:// of a daemon or http:// of a server; pids: the processes that answer there."""

    address: str
    model: str
    clients: int
    requests: int
    warm_up: int
    pids: list[int]
    policy: str | None = None  # in place of a pinned model


class Generator:
    """The generator's process as whoever measures sees it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def measure(self, job: Job) -> Window:
        """Run one job; raises RuntimeError where the generator failed, whose reason stands on stderr."""
        return self.result(job, Window)

    def result(self, job: msgspec.Struct, kind: type[T]) -> T:
        """Run one job of any generator, which answers with this kind; raises as `measure`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(job) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the load generator ended with status {self._process.wait()}")
        return msgspec.json.decode(line, type=kind)


@contextmanager
def generator(files: list[bytes], folder: Path, module: str = "benchmarks.load") -> Iterator[Generator]:
    """Start a generator with these photographs, which are left in `folder` for it."""
    path = folder / "photographs"
    path.write_bytes(msgspec.msgpack.encode(files))
    command = [sys.executable, "-m", module, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield Generator(process)
        finally:
            process.kill()


def run(job: Job, files: list[bytes]) -> Window:
    """Measure one window from inside the generator."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    channels: list[Channel] = []
    try:
        for _ in range(job.clients):
            is_http = job.address.startswith("http:")
            channels.append(
                HttpChannel(job.address, files)
                if is_http
                else ZmqChannel(context, job.address, job.model or None, files, job.policy)
            )
        closed_loop(channels, max(job.warm_up, job.clients))
        server = CpuClock(job.pids)
        server_s, own_s, began_s = server.read_s(), _own_cpu_s(), time.perf_counter()
        latencies_ms = closed_loop(channels, job.requests)
        wall_s = time.perf_counter() - began_s
        return Window(latencies_ms, wall_s, server.read_s() - server_s, _own_cpu_s() - own_s)
    finally:
        for channel in channels:
            channel.close()
        context.term()


def closed_loop(channels: list[Channel], requests: int) -> list[float]:
    """Keep one request outstanding on each channel until `requests` are answered; return their latencies in ms."""
    poller = zmq.Poller()
    by_pollable, sent_s = {}, {}
    sent = 0
    for channel in channels[:requests]:
        poller.register(channel.pollable, zmq.POLLIN)
        by_pollable[channel.pollable] = channel
        sent_s[channel] = time.perf_counter()
        channel.send(sent)
        sent += 1
    latencies_ms: list[float] = []
    while len(latencies_ms) < requests:
        ready = poller.poll(PATIENCE_MS)
        if not ready:
            raise RuntimeError(f"no answer within {PATIENCE_MS / 1e3:.0f} s")
        for pollable, _ in ready:
            channel = by_pollable[pollable]
            if not channel.receive():
                continue
            now_s = time.perf_counter()
            latencies_ms.append((now_s - sent_s[channel]) * 1e3)
            if sent < requests:
                sent_s[channel] = time.perf_counter()
                channel.send(sent)
                sent += 1
    return latencies_ms


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Serve jobs until stdin ends."""
    files = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=list[bytes])
    for line in sys.stdin.buffer:
        window = run(msgspec.json.decode(line, type=Job), files)
        sys.stdout.buffer.write(msgspec.json.encode(window) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
