"""One process of the sampler as the daemon holds it: started, spoken to, ended."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from jetsel import overheard
from jetsel.config import Power
from jetsel.events import event
from jetsel.power.sampling.messages import END, WAKE, Start, Word

log = logging.getLogger("jetsel.power")

MODULE = "jetsel.power.sampling.process"
LEAVE_S = 2.0
_HOME = Path(__file__).parents[3]  # so that the process runs this jetsel, whatever the daemon's folder holds


class ChildError(Exception):
    """The process is of no use any more; the text says why. Islands keep it to themselves."""


class Child:
    """A running process. `receive` and `end` are for one thread, the one that made it; `wake` is for any."""

    def __init__(self, power: Power, ring_fd: int) -> None:
        """Start it; raises ChildError. The kernel ends it together with the thread that makes this."""
        try:
            self._socket, theirs = socket.socketpair()
        except OSError as error:
            raise ChildError(f"no socket for it: {error.strerror}") from None
        try:
            heard, said = overheard.pipe()
        except OSError as error:
            self._socket.close()
            theirs.close()
            raise ChildError(f"no pipe for its words: {error.strerror}") from None
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE],
                cwd=_HOME,
                stdin=theirs.fileno(),
                stdout=said,
                stderr=said,
                pass_fds=(ring_fd,),
            )
        except OSError as error:
            os.close(heard)
            self._socket.close()
            raise ChildError(f"{sys.executable} does not start: {error.strerror}") from None
        finally:
            theirs.close()
            os.close(said)
        overheard.overhear(heard, self._says, f"power-sampler-{self.pid}")
        self._text = b""
        self._socket.setblocking(False)
        with contextlib.suppress(OSError):  # where it has ended already, receive says so
            self._socket.send(msgspec.json.encode(Start(power, ring_fd, os.getpid())) + END)

    @property
    def fd(self) -> int:
        """What to poll for words, and for the process's end."""
        return int(self._socket.fileno())

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def _says(self, line: str) -> None:
        log.warning("power sampler %d says: %s", self.pid, line, extra=event("sampler-output", pid=self.pid))

    def wake(self) -> None:
        """Have it look at once how many windows are open."""
        with contextlib.suppress(OSError):  # full of such bytes already, or ended
            self._socket.send(WAKE)

    def receive(self) -> list[Word]:
        """Return what it has said since the last time; raises ChildError once it has ended."""
        try:
            text = self._socket.recv(1 << 16)
        except BlockingIOError:
            return []
        except OSError as error:
            raise ChildError(str(error.strerror)) from None
        if not text:
            raise ChildError("it closed its end")
        *lines, self._text = (self._text + text).split(END)
        return [msgspec.json.decode(line, type=Word) for line in lines]

    def end(self, patience_s: float) -> str:
        """Have it leave, kill it where it has not within the patience, and return how it ended, in words."""
        self._socket.close()
        try:
            status = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            try:
                status = self._process.wait(LEAVE_S)
            except subprocess.TimeoutExpired:
                return "killed, and not gone yet: the kernel holds it"
        return f"exit status {status}" if status >= 0 else f"ended by {signal.Signals(-status).name}"
