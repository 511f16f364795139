"""States that show in single requests, such as a full queue: told as one begins, and with its count as it ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from jetsel.errors import BusyError, JetselError, OverLimitError
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

QUIET_S = 5.0  # without one more: a full queue lets one in whenever one leaves, and is no less full for it


class Spell:
    """One such state. Times are of time.monotonic()."""

    def __init__(self, begun: Callable[[str, str | None], None], over: Callable[[int, float], None]) -> None:
        """begun: is told the words of the first and whose it was; over: how many there were, in how many seconds."""
        self._begun = begun
        self._over = over
        self._count = 0
        self._began_s = self._last_s = 0.0

    def seen(self, words: str, now_s: float, count: int = 1, client: str | None = None) -> None:
        """Count one more, or several. client: whose it is, as far as that matters."""
        if not self._count:
            self._began_s = now_s
            self._begun(words, client)
        self._count += count
        self._last_s = now_s

    def look(self, now_s: float, quiet_s: float = QUIET_S) -> bool:
        """End it where none came for so long; return whether it goes on."""
        if self._count and now_s - self._last_s >= quiet_s:
            self._over(self._count, self._last_s - self._began_s)
            self._count = 0
        return self._count > 0


class Spells:
    """What the daemon's door and socket go through. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_error: dict[type[JetselError], Spell] = {
            BusyError: Spell(_queue_full, _queue_free),
            OverLimitError: Spell(_over_limit, _within_limits),
        }
        self._replies = Spell(_replies_lost, _replies_kept)
        self._lost = 0
        self._is_any = False

    def refused(self, error: JetselError, client: str | None) -> None:
        """Take note that a request of this client was refused with this error."""
        spell = self._by_error.get(type(error))
        if spell is not None:
            with self._lock:
                spell.seen(str(error), time.monotonic(), client=client)
                self._is_any = True

    def look(self, lost_replies: int) -> None:
        """Tell what is over; to be called about once a second, or more often. lost_replies: since the start."""
        if not self._is_any and lost_replies == self._lost:
            return
        with self._lock:
            now_s = time.monotonic()
            if lost_replies > self._lost:
                self._replies.seen("", now_s, lost_replies - self._lost)
                self._lost = lost_replies
            self._is_any = sum(spell.look(now_s) for spell in self._all()) > 0  # each is looked at

    def end(self) -> None:
        """Tell the counts of what goes on still: the daemon stops."""
        with self._lock:
            for spell in self._all():
                spell.look(time.monotonic(), 0.0)

    def _all(self) -> list[Spell]:
        return [*self._by_error.values(), self._replies]


def _queue_full(words: str, _: str | None) -> None:
    log.warning("requests are refused: %s", words, extra=event("queue-full", code=BusyError.code))


def _queue_free(count: int, took_s: float) -> None:
    told = event("queue-free", count=count, took_s=took_s)
    log.warning("no request is refused for a full queue any more: %d were in %.1f s", count, took_s, extra=told)


def _over_limit(words: str, client: str | None) -> None:
    told = event("client-over-limit", code=OverLimitError.code, client=client)
    log.warning("a client is at its limits: %s", words, extra=told)


def _within_limits(count: int, took_s: float) -> None:
    told = event("clients-within-limits", count=count, took_s=took_s)
    log.warning(
        "all clients are within their limits again: %d messages were refused in %.1f s", count, took_s, extra=told
    )


def _replies_lost(_words: str, _client: str | None) -> None:
    log.warning("replies are lost: who asked is gone, or does not read", extra=event("replies-lost"))


def _replies_kept(count: int, took_s: float) -> None:
    told = event("replies-kept", count=count, took_s=took_s)
    log.warning("no reply is lost any more: %d were in %.1f s", count, took_s, extra=told)
