"""Client of the edge servers: starts, watches and replaces the child process, and forwards requests to it."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from jetsel.base.errors import BusyError, EngineDiedError, JetselError
from jetsel.base.events import event
from jetsel.base.process import python_command
from jetsel.edge.messages import LENGTH, Ask, AskResult, Cancel, EdgeStart, FromChild, State, frame
from jetsel.edge.server import EdgeServer, EdgeServers
from jetsel.wire.status import EdgeStatus

log = logging.getLogger("jetsel.models")

MOST_UNDER_WAY = 32
PATIENCE_MS = 30_000.0  # how long the answer is useful if the request has no deadline
PAUSE_S = 0.5  # before a child that ended is replaced


@dataclass(frozen=True)
class EdgePayload:
    """An image to send: the bytes of a file (shape None), or of a float32 tensor of this shape."""

    payload: bytes
    shape: list[int] | None = None


Delivery = Callable[[AskResult | JetselError], None]
"""Called once for each request, from any thread: with a result that has values, or with the error."""


@dataclass
class _PendingRequest:
    """A request under way. until_s: time.monotonic() until which its answer is useful.

    server: where it runs now. failed: server -> error, of those tried before.
    """

    model: str
    image: EdgePayload
    until_s: float
    deliver: Delivery
    server: EdgeServer
    failed: dict[EdgeServer, str] = field(default_factory=dict)


class EdgeClient:
    """Sends images to the edge servers, of which one is in use at a time. Any thread may call."""

    def __init__(self, start: EdgeStart) -> None:
        """Start the child process; the servers are unavailable until it has checked them."""
        self.models = start.models
        self._start = start
        self._servers = EdgeServers([EdgeServer(url, start.models) for url in start.urls])
        self._decoder: msgspec.msgpack.Decoder[FromChild] = msgspec.msgpack.Decoder(FromChild)
        self._numbers = itertools.count()
        self._under_way: dict[int, _PendingRequest] = {}
        self._cancelled: dict[int, tuple[str, EdgeServer]] = {}  # model and server; later answers are still measured
        self._outbox = self._new_outbox()  # of the current child
        self._closing = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="edge", daemon=True)
        self._thread.start()

    def server(self, model: str) -> EdgeServer:
        """Return the server to send this model's images to: the one in use, or another if that cannot run it."""
        return next(iter(self._servers.servers_for(model)), self._servers.current)

    def unavailable(self, model: str) -> str | None:
        """Return why no server can run the model now, None if one can."""
        reasons = [server.unavailable(model) for server in self._servers.servers]
        return None if None in reasons else "; ".join(dict.fromkeys(filter(None, reasons)))

    def status(self) -> EdgeStatus:
        """Return the state of all servers. Address, reason and network time are those of the server in use."""
        current, servers = self._servers.current, self._servers.servers
        about = current.status()
        runs = dict(sum((server.runs for server in servers), Counter[str]()))
        return EdgeStatus(
            about.url,
            about.reason,
            about.network_ms,
            current.link.usual_bytes,
            runs,
            sum(server.sent_bytes for server in servers),
            sum(server.received_bytes for server in servers),
            [self.server(model).model_status(model) for model in self.models],
            [server.status() for server in servers],
            self._servers.handovers,
        )

    def ask(self, model: str, image: EdgePayload, patience_ms: float | None, deliver: Delivery) -> int:
        """Send an image to the model without waiting; return a number for `cancel`. deliver: gets the result.

        If a server fails, the next one is tried until patience_ms (None: PATIENCE_MS) have passed.
        """
        number, server = next(self._numbers), self.server(model)
        if len(self._under_way) >= MOST_UNDER_WAY:
            deliver(BusyError(f"{MOST_UNDER_WAY} images are on their way to {server.url}, which is the limit"))
            return number
        until_s = time.monotonic() + (PATIENCE_MS if patience_ms is None else patience_ms) / 1e3
        self._under_way[number] = request = _PendingRequest(model, image, until_s, deliver, server)
        self._send(number, request)
        return number

    def _send(self, number: int, request: _PendingRequest) -> None:
        index, left_ms = self._servers.servers.index(request.server), (request.until_s - time.monotonic()) * 1e3
        self._outbox.put(frame(Ask(number, index, request.model, request.image.payload, request.image.shape, left_ms)))

    def cancel(self, number: int) -> None:
        """Stop waiting for the result of the `ask` that returned this number; `deliver` is not called."""
        request = self._under_way.pop(number, None)
        if request is not None:
            self._cancelled[number] = (request.model, request.server)
            self._outbox.put(frame(Cancel(number)))

    def close(self) -> None:
        """End the child process and the edge thread."""
        self._closing.set()
        self._outbox.put(None)
        self._thread.join()

    # In the edge thread.

    def _run(self) -> None:
        """Keep a child process running until `close`: the edge thread's main function."""
        while not self._closing.is_set():
            reason = self._serve()
            self._outbox = self._new_outbox()  # before the old requests fail, so that new ones go to the next child
            self._fail_requests(reason)
            self._closing.wait(PAUSE_S)

    def _new_outbox(self) -> queue.SimpleQueue[bytes | None]:
        """Return a queue of messages for a new child, which begins with its configuration; None in it ends `_write`."""
        out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        out.put(frame(self._start))
        return out

    def _serve(self) -> str:
        """Run one child until it ends; return the reason."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            child = self.process = subprocess.Popen(
                python_command("jetsel.edge.child", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
            theirs.close()
            writer = threading.Thread(target=self._write, args=(ours, self._outbox), name="edge-writer", daemon=True)
            writer.start()
            try:
                with ours.makefile("rb") as stream:
                    while (head := stream.read(LENGTH.size)) and not self._closing.is_set():
                        (length,) = LENGTH.unpack(head)
                        self._handle(self._decoder.decode(stream.read(length)))
            except (OSError, msgspec.DecodeError, ValueError) as error:
                return f"the edge client process failed: {error}"
            finally:
                self._outbox.put(None)
                child.kill()
                status = child.wait()
            return f"the edge client process ended with status {status}"

    def _write(self, link: socket.socket, out: queue.SimpleQueue[bytes | None]) -> None:
        with contextlib.suppress(OSError):  # the reader notices a closed socket
            while (message := out.get()) is not None:
                link.sendall(message)
            link.shutdown(socket.SHUT_RDWR)

    def _handle(self, message: FromChild) -> None:
        """Process a message from the child: a server's new state, or the result of a request."""
        if isinstance(message, State):
            server = self._servers.servers[message.edge]
            self._update_state(server, message)
            self._servers.reconsider(server)
            return
        request = self._under_way.pop(message.number, None)
        ran = self._cancelled.pop(message.number, None) if request is None else (request.model, request.server)
        if ran is None:
            return
        model, server = ran
        server.count(message, is_late=request is None)
        if message.values is not None:
            server.learn(model, message)
        if request is not None:
            self._deliver_or_retry(request, message)

    def _deliver_or_retry(self, request: _PendingRequest, result: AskResult) -> None:
        """Deliver a result; after a failure, send the request to another server if one is left and there is time."""
        if result.values is not None:
            request.deliver(result)
            return
        request.failed[request.server] = f"{request.server.url}: {result.error}"
        others = self._servers.servers_for(request.model, request.failed)
        if others and time.monotonic() < request.until_s:
            request.server = others[0]
            self._under_way[result.number] = request
            self._send(result.number, request)
        else:
            request.deliver(EngineDiedError("; ".join(request.failed.values())))

    def _update_state(self, server: EdgeServer, state: State) -> None:
        """Update the state of a server, and log what changed."""
        old_reason, old_refused = server.reason, server.refused
        server.update(state)
        for model, reason in server.refused.items():
            if reason != old_refused.get(model):
                fields = event("edge-model-refused", url=server.url, model=model, reason=reason)
                log.warning("the edge server is not used for model %s: %s", model, reason, extra=fields)
        if state.reason is None and old_reason is not None:
            log.info("the edge server is available: %s", server.url, extra=event("edge-there", url=server.url))
        elif state.reason is not None and state.reason != old_reason:
            fields = event("edge-away", url=server.url, reason=state.reason)
            log.warning("the edge server is unavailable: %s", state.reason, extra=fields)

    def _fail_requests(self, reason: str) -> None:
        """Mark all servers as unavailable, and fail all requests under way: the child has ended for this reason."""
        if not self._closing.is_set():
            for number, server in enumerate(self._servers.servers):
                self._update_state(server, State(number, reason))
        for number in list(self._under_way):
            request = self._under_way.pop(number, None)
            if request is not None:
                request.deliver(EngineDiedError(reason))
        self._cancelled.clear()
