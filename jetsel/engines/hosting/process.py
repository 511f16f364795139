"""One engine host from its start to its end: the process, the socket to it, and the memory shared with it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting import interpreters
from jetsel.engines.hosting.link import HostLink, LinkBrokenError, Stopped
from jetsel.engines.hosting.running import Memory

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
                said = f"the engine host does not start: {start.interpreter}: {error.strerror}; see: jetsel doctor"
                raise EngineFailedError(said) from None
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
        known = {item.value: item.name for item in signal.Signals}
        return f"ended by {known.get(-status, f'signal {-status}')}"

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
            said = str(reply["message"])
            repair = interpreters.repair(start.interpreter, said) if reply["code"] == "missing-modules" else None
            raise EngineFailedError(f"{where} cannot serve: {said}; {repair or 'see: jetsel doctor'}")
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
