"""The daemon's threads: an idle one sleeps at the socket, and the one that receives a request begins it at once.

There is one more thread than may compute at a time, so the socket is read, and a full queue answered, while all of the
others compute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from jetsel.daemon.dispatcher import Dispatcher
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

PAUSE_S = 0.01  # after a defect, so that one that lasts does not take a core


class WorkerPool:
    """`workers` threads that compute, and one more."""

    def __init__(self, dispatcher: Dispatcher, workers: int) -> None:
        self._dispatcher = dispatcher
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

    def stop(self, patience_s: float) -> bool:
        """Let every thread finish the piece it has, and wait for them; return whether each has ended in that time."""
        give_up_s = time.monotonic() + patience_s
        self._stopping = True
        self._dispatcher.wake()
        for thread in self._threads:
            thread.join(max(0.0, give_up_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _serve(self) -> None:
        while not self._stopping:
            self._turn()
        self._dispatcher.wake()  # one call ends one sleep: each that leaves passes it on

    def _turn(self) -> None:
        try:
            self._dispatcher.turned()
            self._work_or_sleep()
            self._dispatcher.receive()
        except Exception:  # a defect of ours, or no memory: the thread must live to do the next
            log.exception("a worker met a defect and goes on", extra=event("worker-failed"))
            time.sleep(PAUSE_S)

    def _work_or_sleep(self) -> None:
        """Do one piece of work; where there is none, sleep until something may have come."""
        piece = self._take()
        try:
            if piece is None:
                self._dispatcher.wait()
            else:
                piece()
        finally:
            with self._lock:
                if piece is None:
                    self._sleeping -= 1
                else:
                    self._working -= 1

    def _take(self) -> Callable[[], None] | None:
        """Return a piece of work; where there is none, count this thread among those that sleep."""
        with self._lock:
            piece = self._dispatcher.next_piece() if self._working < self._workers else None
            if piece is None:
                self._sleeping += 1
                return None
            self._working += 1
            if self._sleeping and self._working < self._workers and self._dispatcher.has_more():
                self._dispatcher.wake()  # it will wake the next in its turn
            return piece
