"""The edge as the driver sees it: a place where models run, whose child process is started, watched and replaced."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from jetsel.edge.link import Link
from jetsel.edge.messages import LENGTH, MOST_BYTES, Ask, Cancel, FromChild, Result, Start, State, frame
from jetsel.errors import BusyError, EngineDiedError, JetselError
from jetsel.estimate import Estimate
from jetsel.events import event
from jetsel.wire.status import EdgeModelStatus, EdgeStatus

log = logging.getLogger("jetsel.models")

MOST_UNDER_WAY = 32
PATIENCE_MS = 30_000.0  # where the request has no deadline
PAUSE_S = 0.5  # before a child that ended is replaced


@dataclass(frozen=True)
class Photograph:
    """What goes to the edge: a file as it came, or a float32 tensor of this shape as bytes."""

    payload: bytes
    shape: list[int] | None = None


@dataclass(frozen=True)
class Told:
    """What the edge said of one photograph: numbers (classes,) float32, and what it took."""

    values: NDArray[np.float32]
    result: Result


Arrived = Callable[[Told | JetselError], None]


class Edge:
    """One edge: `unavailable` says why it cannot be asked, None where it can. Any thread may call."""

    def __init__(self, start: Start) -> None:
        """Start the child; the edge is unavailable until it has been reached and checked."""
        self.link = Link()
        self.times = {model: Estimate() for model in start.models}  # of the server's own work
        self.received_bytes: dict[str, int] = {}  # by model, of its last answer
        self.refused: dict[str, str] = {}
        self._runs: Counter[str] = Counter()  # by how they ended
        self._bytes = [0, 0]  # sent, received
        self._start = start
        self._unavailable: str | None = f"{start.url} is being connected to"
        self._decoder: msgspec.msgpack.Decoder[FromChild] = msgspec.msgpack.Decoder(FromChild)
        self._numbers = itertools.count()
        self._under_way: dict[int, tuple[str, Arrived]] = {}
        self._late: dict[int, tuple[str, None]] = {}  # not waited for any more; they tell how long it took
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="edge", daemon=True)
        self._thread.start()

    def unavailable(self, model: str) -> str | None:
        """Why this model cannot be asked now, None where it can."""
        return self._unavailable or self.refused.get(model)

    def status(self) -> EdgeStatus:
        """Return how it fares."""
        sent_bytes, received_bytes = self._bytes
        usual_bytes, now_s = self.link.usual_bytes, time.monotonic()
        network_ms, spread_ms = self.link.estimate(usual_bytes) or (None, None)
        models = []
        for name, times in self.times.items():
            known = times.at(now_s) or (None, None)
            models.append(EdgeModelStatus(name, self._start.models[name].name, self.unavailable(name), *known))
        url, runs = self._start.url, dict(self._runs)
        reason, carried = self._unavailable, (sent_bytes, received_bytes)
        return EdgeStatus(url, reason, network_ms, spread_ms, usual_bytes, runs, *carried, models)

    def ask(self, model: str, photograph: Photograph, patience_ms: float | None, arrived: Arrived) -> int:
        """Have the model look at a photograph; returns a number to cancel it by."""
        number = next(self._numbers)
        if len(self._under_way) >= MOST_UNDER_WAY:
            arrived(BusyError(f"{MOST_UNDER_WAY} photographs are on their way to {self._start.url}"))
            return number
        self._under_way[number] = (model, arrived)
        asked = Ask(
            number, model, photograph.payload, photograph.shape, PATIENCE_MS if patience_ms is None else patience_ms
        )
        self._out.put(frame(asked))
        return number

    def cancel(self, number: int) -> None:
        """The result is of no use any more."""
        model, _ = self._under_way.pop(number, (None, None))
        if model is not None:
            self._late[number] = (model, None)
            self._out.put(frame(Cancel(number)))

    def close(self) -> None:
        """End the child."""
        self._closing.set()
        self._out.put(None)
        self._thread.join()

    # The edge's own thread.

    def _run(self) -> None:
        while not self._closing.is_set():
            reason = self._serve()
            self._lose(reason)
            self._closing.wait(PAUSE_S)

    def _serve(self) -> str:
        """Run one child until it ends; return how that was."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            child = self.process = subprocess.Popen(
                [sys.executable, "-m", "jetsel.edge.child", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
            theirs.close()
            self._out = queue.SimpleQueue()
            self._out.put(frame(self._start))
            writer = threading.Thread(target=self._write, args=(ours, self._out), name="edge-writer", daemon=True)
            writer.start()
            try:
                with ours.makefile("rb") as stream:
                    while (head := stream.read(LENGTH.size)) and not self._closing.is_set():
                        (length,) = LENGTH.unpack(head)
                        if length > MOST_BYTES:
                            break
                        self._take(self._decoder.decode(stream.read(length)))
            except (OSError, msgspec.DecodeError, ValueError) as error:
                return f"the edge's process failed: {error}"
            finally:
                self._out.put(None)
                child.kill()
                status = child.wait()
            return f"the edge's process ended with status {status}"

    def _write(self, link: socket.socket, out: queue.SimpleQueue[bytes | None]) -> None:
        with contextlib.suppress(OSError):  # the reader hears of it
            while (message := out.get()) is not None:
                link.sendall(message)
            link.shutdown(socket.SHUT_RDWR)

    def _take(self, message: FromChild) -> None:
        if isinstance(message, State):
            if message.is_new:
                self.link = Link()
            if message.look_ms is not None:
                self.link.observe(0, message.look_ms)
            for model, result in message.probed:
                self._learn(model, result)
            answered = {model for model, _ in message.probed}
            still = {} if message.is_new else {one: why for one, why in self.refused.items() if one not in answered}
            self.refused = still | message.refused
            self._note(message.reason)
            return
        self._bytes = [self._bytes[0] + message.sent_bytes, self._bytes[1] + message.received_bytes]
        is_late = message.number in self._late
        failed = "cancelled" if is_late else "failed"
        self._runs[failed if message.values is None else "late" if is_late else "answered"] += 1
        asked = self._under_way.pop(message.number, None) or self._late.pop(message.number, None)
        if asked is None:
            return
        asked_model, arrived = asked
        if message.values is not None:
            self._learn(asked_model, message)
        if arrived is None:
            return
        if message.values is None:
            arrived(EngineDiedError(f"{self._start.url}: {message.error}"))
        else:
            arrived(Told(np.frombuffer(message.values, "<f4").astype(np.float32), message))

    def _learn(self, model: str, result: Result) -> None:
        """Take in what one answer took; where the server does not say its part, the path's usual time is taken off."""
        self.received_bytes[model] = result.received_bytes
        server_ms = result.server_ms
        if server_ms is None:
            known = self.link.estimate(0)
            server_ms = max(0.0, result.total_ms - (0.0 if known is None else known[0]))
        else:
            self.link.observe(result.sent_bytes, max(0.0, result.total_ms - server_ms))
        self.times[model].add(server_ms, time.monotonic())

    def _note(self, reason: str | None) -> None:
        if reason != self._unavailable:
            if reason is None:
                log.info("the edge can be asked: %s", self._start.url, extra=event("edge-there", url=self._start.url))
            else:
                log.warning("the edge cannot be asked: %s", reason, extra=event("edge-away", reason=reason))
        self._unavailable = reason

    def _lose(self, reason: str) -> None:
        """Tell all that is under way that nothing will come."""
        if not self._closing.is_set():
            self._note(reason)
        for number in list(self._under_way):
            _, arrived = self._under_way.pop(number, (None, None))
            if arrived is not None:
                arrived(EngineDiedError(reason))
        self._late.clear()
