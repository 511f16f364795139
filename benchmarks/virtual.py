"""Time that passes only while every thread waits for it, so that threads of the daemon's code can be simulated."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable


class VirtualTime:
    """Threads that take turns, one at a time: the next is the one whose time comes first."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._now_s = 0.0
        self._numbers = itertools.count()
        self._due: list[tuple[float, int, threading.Semaphore]] = []
        self._own = threading.local()
        self._defects: list[Exception] = []

    def now(self) -> float:
        """Return the time in seconds."""
        return self._now_s

    def run(self, main: Callable[[], None], *others: Callable[[], None]) -> None:
        """Run all of them, `main` in this thread; it should see to it that the others end."""
        turns = [threading.Semaphore(0) for _ in others]
        threads = [
            threading.Thread(target=self._in_turn, args=(other, turn))
            for other, turn in zip(others, turns, strict=True)
        ]
        self._own.turn = threading.Semaphore(0)
        for thread, turn in zip(threads, turns, strict=True):
            self.wake_at(self._now_s, turn)
            thread.start()
        main()
        self._next()
        for thread in threads:
            thread.join()
        if self._defects:
            raise self._defects[0]

    def _in_turn(self, work: Callable[[], None], turn: threading.Semaphore) -> None:
        self._own.turn = turn
        turn.acquire()
        try:
            work()
        except Exception as defect:  # `run` raises it, once the others have ended
            self._defects.append(defect)
        self._next()

    def sleep(self, length_s: float) -> None:
        """Let this much time pass."""
        self.wake_at(self._now_s + length_s, self._own.turn)
        self.pause()

    def pause(self) -> None:
        """Wait until another thread calls `wake_at` for this one."""
        self._next()
        self._own.turn.acquire()

    def turn(self) -> threading.Semaphore:
        """Return what this thread is woken by."""
        found: threading.Semaphore = self._own.turn
        return found

    def wake_at(self, time_s: float, turn: threading.Semaphore) -> None:
        """Have a thread go on at this time."""
        heapq.heappush(self._due, (time_s, next(self._numbers), turn))

    def _next(self) -> None:
        if self._due:
            self._now_s, _, turn = heapq.heappop(self._due)
            turn.release()
