"""When the daemon reports to the service manager that it works: no thread of its own does so.

Each worker comes round once a second or more often. The one that finds a feeding due looks whether all of them have
come round since the last one, and whether a request of the daemon's own was answered. Workers that hang feed nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from jetsel.base.events import event

log = logging.getLogger("jetsel.daemon")

FEED_AT = 0.5  # of the period, as sd_watchdog_enabled(3) has it
TELL_AT = 0.75  # of the period without a feeding: the next one is too late, mostly, and the log should know first
LOOK_AT = 0.1  # of the period: the time between two looks once one is due, and the longest that a worker may sleep


class Watchdog:
    """Feeds while the workers work. `turned` is called by each of them whenever it comes round."""

    def __init__(
        self,
        period_s: float | None,
        feed: Callable[[], bool],
        probe: Callable[[], str | None],
        waiting_for_host: Callable[[], frozenset[int]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """period_s: the longest time between two feedings; None: none is due, ever.

        feed: returns whether the service manager took it; what it did not take is tried again at the next look.
        probe: returns why the daemon's own request has no answer yet, None once it has one.
        waiting_for_host: the threads that wait for an engine host, whose supervisor has limits of its own.
        """
        self._period_s = period_s
        self._feed = feed
        self._probe = probe
        self._waiting_for_host = waiting_for_host
        self._now = now
        self._lock = threading.Lock()  # held by the thread that looks
        self._turned_s: dict[int, float] = {}  # by thread: when it came round the last time
        self._fed_s = 0.0
        self._due_s = float("inf")
        self._has_told = False

    @property
    def longest_sleep_s(self) -> float | None:
        """How long a worker may sleep at most, None where there is no watchdog."""
        return None if self._period_s is None else self._period_s * LOOK_AT

    def start(self) -> None:
        """Feed from now on: once the daemon is ready, which is when the service manager begins to wait for it."""
        if self._period_s is not None:
            self._fed_s = self._now()
            self._due_s = self._fed_s + self._period_s * FEED_AT

    def turned(self) -> None:
        """The calling worker has come round: it has done its piece of work, if it had one, and read the socket."""
        if self._period_s is None:
            return
        now_s = self._now()
        self._turned_s[threading.get_ident()] = now_s
        if now_s >= self._due_s and self._lock.acquire(blocking=False):
            try:
                if now_s >= self._due_s:  # else another thread has just looked
                    self._look(now_s, self._period_s)
            finally:
                self._lock.release()

    def _look(self, now_s: float, period_s: float) -> None:
        why = self._stuck(now_s) or self._probe()
        if why is None and not self._feed():
            why = "the service manager takes no word"
        if why is None:
            self._fed_s, self._due_s = now_s, now_s + period_s * FEED_AT
            if self._has_told:
                log.warning("the watchdog is fed again", extra=event("watchdog-fed"))
            self._has_told = False
            return
        self._due_s = now_s + period_s * LOOK_AT
        if now_s - self._fed_s >= period_s * TELL_AT and not self._has_told:
            self._has_told = True
            log.error("the watchdog is not fed: %s", why, extra=event("watchdog-starved"))

    def _stuck(self, now_s: float) -> str | None:
        """Which worker has not come round since the last feeding; None where each has."""
        at_host = self._waiting_for_host()
        for ident, turned_s in list(self._turned_s.items()):
            if turned_s <= self._fed_s and ident not in at_host:
                names = [thread.name for thread in threading.enumerate() if thread.ident == ident]
                return f"{' '.join(names)} has been at one piece of work for {now_s - turned_s:.1f} s"
        return None
