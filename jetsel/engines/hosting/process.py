"""One engine host from start to end: the process, the memory shared with it, and one exchange at a time.

The framing is that of host/messages.py, which cannot be imported here: four bytes of length, big-endian, then JSON.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting import interpreters
from jetsel.engines.hosting.running import Memory

MAX_MESSAGE_BYTES = 65_536
HEADER = struct.Struct("!I")
LOOK_S = 0.2  # interval between calls of a StopCheck
HOST = Path(__file__).parents[1] / "host"
PROTOCOL = 4
LEAVE_S = 5.0  # for a host to exit after it was asked
GONE_S = 5.0  # limit for a killed process to end; after it, the kernel is holding it
STANDARD_ERROR = 2

StopCheck = Callable[[], str | None]
"""Returns why a wait for the host must end now, None while it may go on."""


class LinkBrokenError(Exception):
    """The host has ended, or broke the protocol; it cannot be used any more."""


class LinkTimeoutError(LinkBrokenError):
    """The host did not answer within the limit."""


@dataclass(frozen=True)
class HostStart:
    """How to start a host."""

    interpreter: str  # path of the Python that runs it
    backend: str  # "tensorrt" or "onnxruntime"
    reserve_bytes: int = 0  # memory that loads must leave free
    hello_s: float = 60.0  # limit of the start: reading TensorRT's libraries from a slow card takes long
    output: int = STANDARD_ERROR  # descriptor, or subprocess.DEVNULL, for all that it prints


class HostProcess:
    """A running host process that has answered hello. One thread at a time may exchange messages with it."""

    def __init__(self, start: HostStart, stop_reason: StopCheck | None = None) -> None:
        """Start the host and wait for its hello; raises EngineFailedError with the reason if it does not come.

        Call this in a long-lived thread: the kernel kills the host when that thread ends.
        """
        with contextlib.ExitStack() as undo:
            try:
                self.memory = Memory()  # each message has its size, so that the host maps what was added
                undo.callback(self.memory.close)
                self._socket, theirs = socket.socketpair()
                undo.callback(self._socket.close)
                undo.callback(theirs.close)
                self._child = subprocess.Popen(
                    [start.interpreter, "-I", str(HOST), "--backend", start.backend, "--fd", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=start.output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs.fileno(), self.memory.fd),
                    env=interpreters.environment(),
                    start_new_session=True,
                )
            except OSError as error:
                message = f"the engine host does not start: {start.interpreter}: {error.strerror}; see: jetsel doctor"
                raise EngineFailedError(message) from None
            theirs.close()
            undo.pop_all()
        self._socket.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._number, self._unread = 0, b""  # of the last request; bytes of a reply that is not complete
        self.last_reply_s = 0.0  # by time.monotonic()
        try:
            self.about = self._hello(start, stop_reason)  # versions and GPU, see docs/engine-host.md
        except EngineFailedError:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """Process id of the host."""
        return self._child.pid

    @property
    def fd(self) -> int:
        """Descriptor to poll for the host's end; negative after `hang_up`."""
        return self._socket.fileno()

    def exchange(
        self, kind: str, request: Mapping[str, Any], limit_s: float, stop_reason: StopCheck | None = None
    ) -> dict[str, Any]:
        """Send one request ("load", "infer" ...; see docs/engine-host.md) and return its reply, successful or not.

        limit_s: until the reply. Raises LinkTimeoutError after it, LinkBrokenError if the host has ended or broke the
        protocol, or with the reason that `stop_reason` returns.
        """
        self._number += 1
        number = self._number
        give_up_s = time.monotonic() + limit_s
        self._send({"id": number, "do": kind, **request})
        (length,) = HEADER.unpack(self._read(HEADER.size, give_up_s, stop_reason))
        if length > MAX_MESSAGE_BYTES:
            raise LinkBrokenError(f"it announced a message of {length} bytes; at most {MAX_MESSAGE_BYTES} are read")
        try:
            reply = msgspec.json.decode(self._read(length, give_up_s, stop_reason), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise LinkBrokenError(f"it did not send a JSON object: {error}") from None
        if reply.get("id") != number or "ok" not in reply:
            raise LinkBrokenError(f"it sent something other than a reply to {kind}")
        self.last_reply_s = time.monotonic()
        return reply

    def leave(self) -> None:
        """Ask the host to exit; kill it if it does not do so within LEAVE_S."""
        with contextlib.suppress(LinkBrokenError):
            self.exchange("quit", {}, LEAVE_S)
        self.kill(LEAVE_S)

    def hang_up(self) -> None:
        """Close this end of the socket pair; the host then exits."""
        self._socket.close()

    def kill(self, patience_s: float = 0.0) -> str:
        """Kill the host and its children unless it ends by itself within patience_s; return how it ended, in words."""
        try:
            self._child.wait(patience_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.hang_up()
        self.memory.close()
        try:
            status = self._child.wait(GONE_S)
        except subprocess.TimeoutExpired:
            return "killed, but the kernel has not ended it yet"
        if status >= 0:
            return f"exit status {status}"
        signal_names = {item.value: item.name for item in signal.Signals}
        return f"ended by {signal_names.get(-status, f'signal {-status}')}"

    def _send(self, message: Mapping[str, Any]) -> None:
        body = msgspec.json.encode({**message, "memory_bytes": self.memory.size})
        try:
            sent = self._socket.send(HEADER.pack(len(body)) + body)
        except OSError as error:
            raise LinkBrokenError(f"its socket broke: {error.strerror}") from None
        if sent < HEADER.size + len(body):  # the kernel has room for several messages, and all earlier ones were read
            raise LinkBrokenError("it no longer accepts messages")

    def _read(self, length: int, give_up_s: float, stop_reason: StopCheck | None) -> bytes:
        """Return the next `length` bytes; wait until give_up_s (time.monotonic()). Raises what `exchange` does."""
        while len(self._unread) < length:
            left_s = give_up_s - time.monotonic()
            if left_s <= 0:
                raise LinkTimeoutError("it did not answer in time")
            if stop_reason is not None and (why := stop_reason()) is not None:
                raise LinkBrokenError(why)
            if not self._poll.poll(1e3 * (left_s if stop_reason is None else min(left_s, LOOK_S))):
                continue
            try:
                part = self._socket.recv(MAX_MESSAGE_BYTES)  # usually a whole message
            except OSError as error:
                raise LinkBrokenError(f"its socket broke: {error.strerror}") from None
            if not part:
                raise LinkBrokenError("it closed the connection")
            self._unread += part
        content, self._unread = self._unread[:length], self._unread[length:]
        return content

    def _hello(self, start: HostStart, stop_reason: StopCheck | None) -> dict[str, Any]:
        """Return the host's reply to hello; raises EngineFailedError, with the repair, if it cannot serve."""
        request = {"memory_fd": self.memory.fd, "reserve_bytes": start.reserve_bytes}
        where = f"the engine host under {start.interpreter}"
        try:
            reply = self.exchange("hello", request, start.hello_s, stop_reason=stop_reason)
        except LinkBrokenError as error:
            message = f"{where} did not start up: {error} ({self.kill(0.2)}); see: jetsel doctor"
            raise EngineFailedError(message) from None
        if not reply["ok"]:
            message = str(reply["message"])
            repair = interpreters.repair(start.interpreter, message) if reply["code"] == "missing-modules" else None
            raise EngineFailedError(f"{where} cannot serve: {message}; {repair or 'see: jetsel doctor'}")
        if reply["protocol"] != PROTOCOL:
            message = f"{where} speaks protocol {reply['protocol']}, not {PROTOCOL}: install jetsel again"
            raise EngineFailedError(message)
        return reply


def query_host(start: HostStart) -> dict[str, Any]:
    """Start a host, end it, and return its reply to hello, with versions and GPU; raises EngineFailedError."""
    process = HostProcess(start)
    process.leave()
    return process.about
