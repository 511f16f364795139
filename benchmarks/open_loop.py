"""The open loop: requests leave when they are due, whatever was answered. `python -m benchmarks.open_loop`.

It reads the images' file, then one job in JSON a line, and answers each with what became of every request. Times count
from when a request was due, so that a generator or a socket that is late cannot make a server seem fast.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import msgspec
import zmq

from benchmarks.channels import HttpChannel
from benchmarks.window import CpuClock
from jetsel.wire import PROTOCOL_VERSION, Classify, encode

PATIENCE_S = 3.0  # after the last request is due
MOST_CONNECTIONS = 400  # to a server over HTTP, which answers one request on each


class OpenJob(msgspec.Struct, frozen=True):
    """What to send. due_s: when, in seconds from the start; images: the number of each one's image."""

    address: str
    pids: list[int]
    due_s: list[float]
    images: list[int]
    policy: str | None = None
    deadline_ms: float | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What became of one request. code: "ok", the error's code, or "lost"; latency_ms: infinite if it is lost.

    point: the operating point of the answer; models: those that ran.
    """

    code: str
    latency_ms: float | None
    wnid: str | None = None
    point: str | None = None
    models: list[str] = []


class OpenWindow(msgspec.Struct, frozen=True):
    """The outcomes in the order of the requests, and the processor time of server and generator."""

    outcomes: list[Outcome]
    server_cpu_s: float
    generator_cpu_s: float
    late_ms: float  # the 99th percentile of how late the generator sent a request


class _Zmq:
    """All requests on one connection; replies say which they answer."""

    def __init__(self, job: OpenJob, files: list[bytes]) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        for option in (zmq.SNDHWM, zmq.RCVHWM, zmq.LINGER):
            self._socket.setsockopt(option, 0)
        self._socket.connect(job.address)
        self._files = [zmq.Frame(data, copy=False) for data in files]
        self._images = job.images
        self._heads = [
            encode(Classify(PROTOCOL_VERSION, str(number), policy=job.policy, deadline_ms=job.deadline_ms))
            for number in range(len(job.images))
        ]

    def send(self, number: int) -> bool:
        self._socket.send(self._heads[number], zmq.SNDMORE)
        self._socket.send(self._files[self._images[number]], copy=False)
        return True

    def wait(self, timeout_s: float) -> list[tuple[int, bytes]]:
        """Return what has come, each with the number of its request; -1 if that stands in the reply."""
        found: list[tuple[int, bytes]] = []
        if self._socket.poll(math.ceil(timeout_s * 1e3)):
            try:
                while True:
                    found.append((-1, self._socket.recv_multipart(zmq.NOBLOCK)[-1]))
            except zmq.Again:
                pass
        return found

    def close(self) -> None:
        self._socket.close()
        self._context.term()


class _Http:
    """Each request on a connection that waits for nothing else."""

    def __init__(self, job: OpenJob, files: list[bytes]) -> None:
        self._address, self._files, self._images = job.address, files, job.images
        self._poller = zmq.Poller()
        self._free: list[HttpChannel] = []
        self._busy: dict[int, tuple[HttpChannel, int]] = {}

    def send(self, number: int) -> bool:
        if not self._free:
            if len(self._busy) >= MOST_CONNECTIONS:
                return False
            channel = HttpChannel(self._address, self._files)
            self._poller.register(channel.pollable, zmq.POLLIN)
            self._free.append(channel)
        channel = self._free.pop()
        self._busy[channel.pollable] = channel, number
        channel.send(self._images[number])
        return True

    def wait(self, timeout_s: float) -> list[tuple[int, bytes]]:
        found = []
        for descriptor, _ in self._poller.poll(math.ceil(timeout_s * 1e3)):
            channel, number = self._busy[descriptor]
            if (reply := channel.take()) is not None:
                status, body = reply
                found.append((number, body if status == b"200" else b""))
                del self._busy[descriptor]
                self._free.append(channel)
        return found

    def close(self) -> None:
        for channel in [*self._free, *(channel for channel, _ in self._busy.values())]:
            channel.close()


class _Reply(msgspec.Struct):
    """What is read of a reply of either server."""

    type: str = "answer"
    id: str | None = None
    code: str = "ok"
    wnid: str | None = None
    operating_point: str | None = None
    ran: list[dict[str, object]] = []


def run(job: OpenJob, files: list[bytes]) -> OpenWindow:
    """Send one job's requests, and wait for what comes back."""
    link = _Http(job, files) if job.address.startswith("http:") else _Zmq(job, files)
    replies: list[tuple[float, int, bytes]] = []
    late_s: list[float] = []
    refused: set[int] = set()
    try:
        clock = CpuClock(job.pids)
        cpu_s, own_s, began_s = clock.read_s(), time.process_time(), time.perf_counter()
        end_s = job.due_s[-1] + PATIENCE_S
        sent = 0
        while len(replies) + len(refused) < len(job.due_s):
            now_s = time.perf_counter() - began_s
            while sent < len(job.due_s) and job.due_s[sent] <= now_s:
                late_s.append(now_s - job.due_s[sent])
                if not link.send(sent):
                    refused.add(sent)
                sent += 1
            wait_s = (job.due_s[sent] if sent < len(job.due_s) else end_s) - now_s
            if wait_s < 0:
                break
            found = link.wait(wait_s)
            now_s = time.perf_counter() - began_s
            replies += [(now_s, number, data) for number, data in found]
        used_s, own_s = clock.read_s() - cpu_s, time.process_time() - own_s
    finally:
        link.close()
    outcomes = [Outcome("lost", None)] * len(job.due_s)
    for at_s, number, data in replies:
        reply = msgspec.json.decode(data, type=_Reply) if data else _Reply(code="refused")
        place = int(reply.id or 0) if number < 0 else number
        models = [str(one["model"]) for one in reply.ran]
        ms = (at_s - job.due_s[place]) * 1e3
        outcomes[place] = Outcome(reply.code, ms, reply.wnid, reply.operating_point, models)
    late_s.sort()
    return OpenWindow(outcomes, used_s, own_s, 1e3 * late_s[int(0.99 * len(late_s))])


def main() -> None:
    """Serve jobs until stdin ends."""
    files = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=list[bytes])
    for line in sys.stdin.buffer:
        window = run(msgspec.json.decode(line, type=OpenJob), files)
        sys.stdout.buffer.write(msgspec.json.encode(window) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
