"""The daemon's threads: an idle one sleeps at the socket, and the one that receives a request begins it at once.

There is one more thread than may compute at a time, so the socket is read, and a full queue answered, while all of the
others compute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

PAUSE_S = 0.01  # after a defect, so that one that lasts does not take a core


class Work(Protocol):
    """What the workers serve."""

    def wait(self) -> None:
        """Return when the socket may have something, `wake` was called, or it is time to come round."""

    def wake(self) -> None:
        """End the sleep of one thread, or the next sleep."""

    def receive(self) -> int:
        """Take what has come off the socket, without waiting; return how many messages that was."""

    def next_piece(self) -> Callable[[], None] | None:
        """Return the next piece of work that can be done now, or None. Called under the pool's lock."""

    def has_more(self) -> bool:
        """Whether another piece may be there. Called under the pool's lock."""

    def turned(self) -> None:
        """The calling thread has come round: its piece is done, and the socket is read."""

    def left(self) -> None:
        """The calling thread comes round no more."""


class WorkerPool:
    """`workers` threads that compute, and one more."""

    def __init__(self, work: Work, workers: int) -> None:
        self._work = work
        self._workers = workers
        self._lock = threading.Lock()
        self._working = 0
        self._sleeping = 0
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"worker-{i}", daemon=True) for i in range(workers + 1)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, patience_s: float | None = None) -> bool:
        """Let every thread finish the piece it has, and wait for them; return whether each has ended in that time."""
        give_up_s = None if patience_s is None else time.monotonic() + patience_s
        self._stopping = True
        self._work.wake()
        for thread in self._threads:
            thread.join(None if give_up_s is None else max(0.0, give_up_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _serve(self) -> None:
        try:
            is_read = False  # whether the socket had nothing, and no reply was sent since: sending can hide a message
            while not self._stopping:
                is_read = self._turn(is_read=is_read)
        finally:
            self._work.left()
            self._work.wake()  # one call ends one sleep: each that leaves passes it on

    def _turn(self, *, is_read: bool) -> bool:
        """Do one piece of work, or sleep where the socket is read, then read it; return whether there was nothing."""
        try:
            self._work.turned()
            self._work_or_sleep(is_read=is_read)
            return self._work.receive() == 0
        except Exception:  # a defect of ours, or no memory: the thread must live to do the next
            log.exception("a worker met a defect and goes on", extra=event("worker-failed"))
            time.sleep(PAUSE_S)
            return False

    def _work_or_sleep(self, *, is_read: bool) -> None:
        piece = self._take(will_sleep=is_read)
        if piece is not None:
            try:
                piece()
            finally:
                with self._lock:
                    self._working -= 1
        elif is_read:
            try:
                self._work.wait()
            finally:
                with self._lock:
                    self._sleeping -= 1

    def _take(self, *, will_sleep: bool) -> Callable[[], None] | None:
        """Return a piece of work; where there is none, count this thread among the sleeping if it is about to be."""
        with self._lock:
            piece = self._work.next_piece() if self._working < self._workers else None
            if piece is None:
                self._sleeping += will_sleep
                return None
            self._working += 1
            try:
                if self._sleeping and self._working < self._workers and self._work.has_more():
                    self._work.wake()  # it will wake the next in its turn
            except MemoryError:
                pass  # the piece is taken and must be done; those that sleep come round by themselves
            return piece
