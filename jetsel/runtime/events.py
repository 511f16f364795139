"""What comes to drivers from outside their threads: results of runs elsewhere, and times that are reached.

One heap of timers and one thread that sleeps until the earliest of them, for all drivers of a daemon. It begins with
the first timer: a daemon whose models all run here has neither.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

from jetsel.base.events import event

log = logging.getLogger("jetsel.daemon")


class Timer:
    """A time at which something is called, unless it is cancelled before."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Call nothing, and hold nothing any more."""
        self.call = None


class Events:
    """Any thread may call. wake: rouses a thread that lets drivers carry on."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()  # of timers with the same time the first set is the first called
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def at(self, time_s: float, call: Callable[[], None]) -> Timer:
        """Have this called at a time of time.monotonic(), by the timers' thread."""
        timer = Timer(call)
        with self._changed:
            heapq.heappush(self._timers, (time_s, next(self._numbers), timer))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
                self._thread.start()
            elif self._timers[0][2] is timer:
                self._changed.notify()
        return timer

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._timers or (left_s := self._timers[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left_s if self._timers else None)
                timer = heapq.heappop(self._timers)[2]
            call = timer.call
            if call is not None:
                try:
                    call()
                except Exception:  # the thread must live to call the next
                    log.exception("a timer failed because of a defect; later timers run", extra=event("timer-failed"))
