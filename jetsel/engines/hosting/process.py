"""One engine host from its start to its end: the process, the memory shared with it, and one exchange at a time.

The framing is that of host/messages.py, which nobody imports: four bytes of length, big-endian, then a JSON object.
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
LOOK_S = 0.2  # how often `stopped` is asked

Stopped = Callable[[], str | None]


class LinkBrokenError(Exception):
    """The host is gone, or what it sent is none of the protocol; nothing more can be believed of it."""


class LinkTimeoutError(LinkBrokenError):
    """The host did not answer within the limit."""


class HostLink:
    """One end of a socketpair. Used by one thread at a time."""

    def __init__(self, connection: socket.socket, memory: Memory) -> None:
        """memory: shared with the host, which learns its size with each message, and maps what has been added."""
        connection.setblocking(False)
        self._socket = connection
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._memory = memory
        self._number = 0
        self._unread = b""

    @property
    def fd(self) -> int:
        """The descriptor, for a poll on the host's end; negative once it is closed."""
        return self._socket.fileno()

    def exchange(
        self, kind: str, request: Mapping[str, Any], limit_s: float, stopped: Stopped | None = None
    ) -> dict[str, Any]:
        """Send one request and return its reply, whether it says ok or not.

        limit_s: until the reply. stopped: asked now and then; a reason that it returns ends the exchange.
        Raises LinkBrokenError, LinkTimeoutError.
        """
        self._number += 1
        number = self._number
        give_up_s = time.monotonic() + limit_s
        self._send({"id": number, "do": kind, **request})
        reply = self._receive(give_up_s, stopped)
        if reply.get("id") != number or "ok" not in reply:
            raise LinkBrokenError(f"it sent something other than a reply to {kind}")
        return reply

    def close(self) -> None:
        """Close this end; the host leaves when it notices."""
        self._socket.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        body = msgspec.json.encode({**message, "memory_bytes": self._memory.size})
        try:
            sent = self._socket.send(HEADER.pack(len(body)) + body)
        except OSError as error:
            raise LinkBrokenError(f"its socket broke: {error.strerror}") from None
        if sent < HEADER.size + len(body):  # the kernel has room for several messages, and the host has read all before
            raise LinkBrokenError("it no longer accepts messages")

    def _receive(self, give_up_s: float, stopped: Stopped | None) -> dict[str, Any]:
        (length,) = HEADER.unpack(self._read(HEADER.size, give_up_s, stopped))
        if length > MAX_MESSAGE_BYTES:
            raise LinkBrokenError(f"it announced a message of {length} bytes; at most {MAX_MESSAGE_BYTES} are read")
        try:
            return msgspec.json.decode(self._read(length, give_up_s, stopped), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise LinkBrokenError(f"it did not send a JSON object: {error}") from None

    def _read(self, length: int, give_up_s: float, stopped: Stopped | None) -> bytes:
        """Return exactly `length` bytes, however they arrive."""
        while len(self._unread) < length:
            left_s = give_up_s - time.monotonic()
            if left_s <= 0:
                raise LinkTimeoutError("it did not answer in time")
            if stopped is not None and (why := stopped()) is not None:
                raise LinkBrokenError(why)
            if not self._poll.poll(1e3 * (left_s if stopped is None else min(left_s, LOOK_S))):
                continue
            try:
                part = self._socket.recv(MAX_MESSAGE_BYTES)  # a whole message, mostly, at once
            except OSError as error:
                raise LinkBrokenError(f"its socket broke: {error.strerror}") from None
            if not part:
                raise LinkBrokenError("it closed the connection")
            self._unread += part
        content, self._unread = self._unread[:length], self._unread[length:]
        return content


HOST = Path(__file__).parents[1] / "host"
PROTOCOL = 4
LEAVE_S = 5.0
GONE_S = 5.0  # that a killed process may take to go: more, and the kernel holds it
STANDARD_ERROR = 2


@dataclass(frozen=True)
class HostStart:
    """How to start one: the interpreter, what runs in it, and the memory that loads leave free.

    output: a descriptor, or subprocess.DEVNULL, for what it prints, errors included.
    """

    interpreter: str
    backend: str
    reserve_bytes: int = 0
    hello_s: float = 60.0  # a board reads TensorRT's libraries from a slow card for the first time
    output: int = STANDARD_ERROR


class HostProcess:
    """A running host that has said hello. Its link is used by one thread at a time."""

    def __init__(self, start: HostStart, stopped: Stopped | None = None) -> None:
        """Start it and wait for its hello; raises EngineFailedError with the reason if there is none.

        stopped: see Link.exchange.
        The kernel kills the host when the thread that makes this ends: make it in one that lives on.
        """
        with contextlib.ExitStack() as undo:
            try:
                self.memory = Memory()
                undo.callback(self.memory.close)
                ours, theirs = socket.socketpair()
                self.link = HostLink(ours, self.memory)
                self.exchange = self.link.exchange
                undo.callback(self.link.close)
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
        try:
            self.about = self._hello(start, stopped)
        except EngineFailedError:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._child.pid

    def leave(self) -> None:
        """Ask it to leave, and see that it does."""
        with contextlib.suppress(LinkBrokenError):
            self.exchange("quit", {}, LEAVE_S)
        self.kill(LEAVE_S)

    def kill(self, patience_s: float = 0.0) -> str:
        """Kill it and all that it started, if it has not ended by itself within the patience.

        Return how it ended, in words.
        """
        try:
            self._child.wait(patience_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.link.close()
        self.memory.close()
        try:
            status = self._child.wait(GONE_S)
        except subprocess.TimeoutExpired:
            return "killed, but the kernel has not ended it yet"
        if status >= 0:
            return f"exit status {status}"
        signal_names = {item.value: item.name for item in signal.Signals}
        return f"ended by {signal_names.get(-status, f'signal {-status}')}"

    def _hello(self, start: HostStart, stopped: Stopped | None) -> dict[str, Any]:
        request = {"memory_fd": self.memory.fd, "reserve_bytes": start.reserve_bytes}
        where = f"the engine host under {start.interpreter}"
        try:
            reply = self.exchange("hello", request, start.hello_s, stopped=stopped)
        except LinkBrokenError as error:
            raise EngineFailedError(
                f"{where} did not start up: {error} ({self.kill(0.2)}); see: jetsel doctor"
            ) from None
        if not reply["ok"]:
            message = str(reply["message"])
            repair = interpreters.repair(start.interpreter, message) if reply["code"] == "missing-modules" else None
            raise EngineFailedError(f"{where} cannot serve: {message}; {repair or 'see: jetsel doctor'}")
        if reply["protocol"] != PROTOCOL:
            raise EngineFailedError(
                f"{where} speaks protocol {reply['protocol']}, not {PROTOCOL}: install jetsel again"
            )
        return reply


def ask_about(start: HostStart) -> dict[str, Any]:
    """Return what a host says of itself in its hello (docs/engine-host.md), and end it; raises EngineFailedError."""
    process = HostProcess(start)
    process.leave()
    return process.about
