"""Whether the daemon works, so that the service manager may be told so: no thread of its own says it.

The threads of the crew come round once a second or more often, and the one that finds a feeding due looks whether all
of them do, and whether a request of the daemon's own was answered. A crew that hangs therefore feeds nothing.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

FEED_AT = 0.5  # of the period, as sd_watchdog_enabled(3) has it
TELL_AT = 0.75  # of the period without a feeding: the next one is too late, mostly, and the log should know first
LOOK_AT = 0.1  # of the period: the longest that a thread may sleep
_PACKAGE = Path(__file__).parents[1]


class Probing(Protocol):
    """The daemon's own request."""

    def ask(self) -> str | None:
        """Have it made, unless it is under way; return why there is no answer yet, None once there is one.

        None, too, where it is not the crew that keeps it from being answered.
        """


class Watchdog:
    """Feeds while the crew works. `turned` is called by each of its threads whenever it comes round."""

    def __init__(
        self,
        period_s: float | None,
        feed: Callable[[], bool],
        probe: Probing,
        waiting_for_host: Callable[[], frozenset[int]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """period_s: the longest time between two feedings; None: none is due, ever.

        feed: returns whether the service manager took it; what it did not take is tried again at the next look.
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
        self._is_answered = False  # the probe, since the last feeding
        self._has_told = False

    @property
    def longest_sleep_s(self) -> float | None:
        """How long a thread may sleep at most, None where there is no watchdog."""
        return None if self._period_s is None else self._period_s * LOOK_AT

    def start(self) -> None:
        """Feed from now on: once the daemon is ready, which is when the service manager begins to wait for it."""
        if self._period_s is not None:
            self._fed_s = self._now()
            self._due_s = self._fed_s + self._period_s * FEED_AT

    def turned(self) -> None:
        """The calling thread has come round: it has done its piece of work, if it had one, and read the socket."""
        if self._period_s is None:
            return
        now_s = self._now()
        self._turned_s[threading.get_ident()] = now_s
        if now_s >= self._due_s and self._lock.acquire(blocking=False):
            try:
                self._look(now_s)
            finally:
                self._lock.release()

    def left(self) -> None:
        """The calling thread of the crew ends."""
        self._turned_s.pop(threading.get_ident(), None)

    def _look(self, now_s: float) -> None:
        assert self._period_s is not None
        if now_s < self._due_s:  # another thread has just fed
            return
        missing = None if self._is_answered else self._probe.ask()
        self._is_answered = missing is None
        why = self._stuck(now_s) or missing
        if why is None and not self._feed():
            why = "the service manager takes no word"
        if why is None:
            self._fed_s, self._due_s, self._is_answered = now_s, now_s + self._period_s * FEED_AT, False
            if self._has_told:
                log.warning("the watchdog is fed again", extra=event("watchdog-fed"))
            self._has_told = False
        elif now_s - self._fed_s >= self._period_s * TELL_AT and not self._has_told:
            self._has_told = True
            log.error("the watchdog is not fed: %s", why, extra=event("watchdog-starved"))

    def _stuck(self, now_s: float) -> str | None:
        """Which thread has not come round since the last feeding, and where it is; None where each has."""
        at_host = self._waiting_for_host()
        for ident, turned_s in list(self._turned_s.items()):
            if turned_s <= self._fed_s and ident not in at_host:
                return f"{_name(ident)} has been at one piece of work for {now_s - turned_s:.1f} s{_place(ident)}"
        return None


def _name(ident: int) -> str:
    return next((thread.name for thread in threading.enumerate() if thread.ident == ident), "a thread of the crew")


def _place(ident: int) -> str:
    """Where in our own code a thread is, in words."""
    frame = sys._current_frames().get(ident)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            return f", in {path.relative_to(_PACKAGE)} line {frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return ""
