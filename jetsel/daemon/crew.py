"""The threads of the daemon: one waits at the socket, the others work; whoever receives a request begins it at once.

Leader and followers: the thread that took a message off the socket hands the waiting to a sleeping one and works on,
so a lone request passes through no second thread, and there is always one more thread than there are workers, so
the socket is read, and a full queue answered, while all of them compute.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger("jetsel.daemon")


class Work(Protocol):
    """What the crew serves."""

    def wait(self) -> None:
        """Sleep until the socket may have something, or `wake` is called."""

    def wake(self) -> None:
        """End the wait of the thread at the socket."""

    def receive(self) -> int:
        """Take what has come off the socket; return how many pieces of work it made."""

    def next_piece(self) -> Callable[[], None] | None:
        """Return the next piece of work that can be done now, or None. Called under the crew's lock."""


class Crew:
    """`workers` threads that compute and one that waits at the socket, in turns."""

    def __init__(self, work: Work, workers: int) -> None:
        self._work = work
        self._workers = workers
        self._change = threading.Condition()
        self._leading = False
        self._working = 0
        self._sleeping = 0
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"crew-{i}", daemon=True) for i in range(workers + 1)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def nudge(self) -> None:
        """Tell a sleeping thread that there may be work that no message brought."""
        with self._change:
            self._change.notify()

    def stop(self) -> None:
        """Let every thread finish the piece it has, and wait for them."""
        with self._change:
            self._stopping = True
            self._change.notify_all()
        self._work.wake()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while True:
            piece = self._next()
            if piece is None:
                return
            try:
                piece()
            except Exception:  # a defect of ours in reading one message: the thread must live to read the next
                log.exception("a thread of the crew met a defect and goes on")

    def _next(self) -> Callable[[], None] | None:
        """Return what this thread does next: a piece of work, or the turn at the socket; None when it is over."""
        with self._change:
            while not self._stopping:
                if self._working < self._workers:
                    piece = self._work.next_piece()
                    if piece is not None:
                        self._working += 1
                        if not self._leading and self._sleeping:
                            self._change.notify()  # somebody has to stand at the socket
                        return lambda: self._do(piece)
                if not self._leading:
                    self._leading = True
                    return self._lead
                self._sleeping += 1
                self._change.wait()
                self._sleeping -= 1
        return None

    def _do(self, piece: Callable[[], None]) -> None:
        try:
            piece()
        finally:
            with self._change:
                self._working -= 1

    def _lead(self) -> None:
        made = 0
        try:
            self._work.wait()
            made = self._work.receive()
        finally:
            with self._change:
                self._leading = False
                # This thread takes one piece itself; more of them, or the socket, want others.
                for _ in range(min(made - 1, self._sleeping)):
                    self._change.notify()
