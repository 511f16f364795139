"""One engine host from its start to its end: the process, the socket to it, and the memory shared with it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jetsel import overheard
from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting.link import Feed, Link, LinkBrokenError, Progress
from jetsel.engines.hosting.memory import Memory
from jetsel.events import event

log = logging.getLogger("jetsel.engines")

HOST = Path(__file__).parents[1] / "host.py"
PROTOCOL = 1
LEAVE_S = 5.0


@dataclass(frozen=True)
class Start:
    """How to start one: the interpreter, what runs in it, its environment, and the memory that loads leave free."""

    interpreter: str
    backend: str
    environment: Mapping[str, str]
    reserve_bytes: int
    hello_s: float


class HostProcess:
    """A running host that has said hello. Its link is used by one thread at a time."""

    def __init__(self, start: Start, begun: Callable[[HostProcess], None] = lambda _: None) -> None:
        """Start it and wait for its hello; raises EngineFailedError with the reason where there is none.

        begun: is given it before the hello, so that another thread may hang up on it.
        The kernel kills the host when the thread that makes this ends: make it in one that lives on.
        """
        try:
            self.memory = Memory()
        except OSError as error:
            raise EngineFailedError(f"no memory to share with an engine host: {error.strerror}") from None
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            self.memory.close()
            raise EngineFailedError(f"no socket for an engine host: {error.strerror}") from None
        try:
            heard, said = overheard.pipe()
        except OSError as error:
            ours.close()
            theirs.close()
            self.memory.close()
            raise EngineFailedError(f"no pipe for an engine host's words: {error.strerror}") from None
        self.link = Link(ours)
        command = [start.interpreter, "-I", str(HOST), "--backend", start.backend, "--fd", str(theirs.fileno())]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=(theirs.fileno(), self.memory.fd),
                env=dict(start.environment),
                start_new_session=True,
            )
        except OSError as error:
            os.close(heard)
            self._release()
            raise EngineFailedError(
                f"the engine host does not start: {start.interpreter}: {error.strerror}; see: jetsel doctor"
            ) from None
        finally:
            theirs.close()
            os.close(said)
        overheard.overhear(heard, self._says, f"engine-host-{self.pid}")
        try:
            begun(self)
            self.about = self._hello(start)
        except EngineFailedError:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def exchange(
        self,
        kind: str,
        request: Mapping[str, Any],
        limit_s: float,
        progress: Progress | None = None,
        feed: Feed | None = None,
    ) -> dict[str, Any]:
        """Ask it one thing; see Link.exchange. `memory_bytes` is added: the host maps what has been added meanwhile."""
        return self.link.exchange(kind, {**request, "memory_bytes": self.memory.size}, limit_s, progress, feed)

    def hang_up(self) -> None:
        """Have the thread that asks it something, now or later, find it gone and end it; any thread may call."""
        self.link.hang_up()

    def leave(self) -> None:
        """Ask it to leave, and see that it does."""
        with contextlib.suppress(LinkBrokenError):
            self.exchange("quit", {}, LEAVE_S)
        self._end(LEAVE_S)

    def kill(self, patience_s: float = 0.0) -> str:
        """End it, at once or when it has not ended by itself within the patience; return how it ended, in words."""
        return self._end(patience_s)

    def _says(self, line: str) -> None:
        words = line.removeprefix(f"jetsel host {self.pid}: ")  # as it begins what it says itself
        log.warning("engine host %d says: %s", self.pid, words, extra=event("host-output", pid=self.pid))

    def _hello(self, start: Start) -> dict[str, Any]:
        request = {"memory_fd": self.memory.fd, "reserve_bytes": start.reserve_bytes}
        where = f"the engine host under {start.interpreter}"
        try:
            reply = self.exchange("hello", request, start.hello_s)
        except LinkBrokenError as error:
            raise EngineFailedError(f"{where} never said hello: {error} ({self.kill()}); see: jetsel doctor") from None
        if not reply.get("ok"):
            raise EngineFailedError(f"{where} cannot serve: {reply.get('message')}; see: jetsel doctor")
        if reply.get("protocol") != PROTOCOL:
            raise EngineFailedError(
                f"{where} speaks protocol {reply.get('protocol')}, not {PROTOCOL}: install jetsel again"
            )
        return reply

    def _end(self, patience_s: float) -> str:
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._release()
        try:
            status = self._process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            return "killed, and not gone yet: the kernel holds it"
        return _in_words(status)

    def _release(self) -> None:
        self.link.close()
        self.memory.close()


def _in_words(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
