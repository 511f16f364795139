"""Who may connect: places for all, a share for each user and key, and some that are kept for who must always get in."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

from jetsel.config import Server
from jetsel.daemon import descriptors
from jetsel.daemon.identity import TRUSTED
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

STRANGER = "stranger"  # whose place one has that is to show a key still
STRANGERS = 256  # at most, and half of tcp's places; but
FEWEST_STRANGERS = 16  # of these, where places are few
REVOKED_KEPT = 16  # connections whose key was revoked, which are told so where they ask
TCP_SHARE = 0.75  # of all places: the rest is for ipc
KEPT = 16  # places for root and the daemon's own user, who ask for status and reload
TELL_EVERY_S = 60.0  # at most, of those who have more than a share: they come back at once


class Places:
    """Counts connections by whose they are, and tells the log who waits for one. For whoever holds the server's lock.

    Whose: the name of an identity, or STRANGER.
    """

    def __init__(self, limits: Server, now: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._now = now
        self._of: Counter[str] = Counter()
        self._over_tcp = 0
        self._is_full = False
        self._told_s = -TELL_EVERY_S
        self._most = max(0, min(limits.max_clients, descriptors.free()))
        self._most_over_tcp = int(self._most * TCP_SHARE)
        self._most_strangers = min(STRANGERS, max(FEWEST_STRANGERS, self._most_over_tcp // 2))

    @property
    def taken(self) -> int:
        """How many stand."""
        return self._of.total()

    def are_free(self, *, is_tcp: bool) -> bool:
        """Whether one more may come, if need be for a stranger."""
        if is_tcp:
            return self._of[STRANGER] > 0 or self._has_tcp_room
        return self.taken < self._most

    def somebody_waits(self) -> None:
        """Tell the log once that there is no place for who came."""
        if not self._is_full:
            self._is_full = True
            log.warning(
                "%d clients are connected and more wait for a place: raise server.max_clients (%d), of which tcp "
                "has three quarters, or the limit of open files (%d), unless many connect over tcp and say nothing",
                self.taken,
                self._limits.max_clients,
                descriptors.limit(),
                extra=event("clients-wait", clients=self.taken),
            )

    def nobody_waits(self) -> None:
        """All who came were let in."""
        if self._is_full:
            self._is_full = False
            log.info(
                "clients are let in again: %d are connected",
                self.taken,
                extra=event("clients-let-in", clients=self.taken),
            )

    def enter(self, who: str) -> bool:
        """Count one in, where `are_free`; False where its user, or strangers, have all that they may have."""
        if who == STRANGER:
            may_enter = self._of[STRANGER] < self._most_strangers and self._has_tcp_room
        else:
            may_enter = who in TRUSTED or _is_over_tcp(who) or self._is_within_share(who)
        if not may_enter:
            return False
        self._of[who] += 1
        self._over_tcp += _is_over_tcp(who)
        return True

    def settle(self, who: str) -> bool:
        """Count a stranger as whose key it has shown; False where that one has all that one may have."""
        if self._has_its_share(who):
            return False
        self.move(STRANGER, who)
        return True

    def move(self, was: str, who: str) -> None:
        """Count one as another's from now on, whatever that one may have."""
        self._take(was)
        self._of[who] += 1

    def are_over(self, who: str, most: int) -> bool:
        """Whether these have more places than so many."""
        return self._of[who] > most

    def leave(self, who: str) -> None:
        """Count one out."""
        self._take(who)
        self._over_tcp -= _is_over_tcp(who)

    def _take(self, who: str) -> None:
        self._of[who] -= 1
        if not self._of[who]:
            del self._of[who]

    @property
    def _are_only_kept_ones_left(self) -> bool:
        """Whether all are taken but those for root and the daemon's own user: an eighth where places are few."""
        others = self.taken - sum(self._of[trusted] for trusted in TRUSTED)
        return others >= self._most - min(KEPT, self._most // 8)

    @property
    def _has_tcp_room(self) -> bool:
        return self._over_tcp < self._most_over_tcp and not self._are_only_kept_ones_left

    def _is_within_share(self, who: str) -> bool:
        return not self._has_its_share(who) and not self._are_only_kept_ones_left

    def _has_its_share(self, who: str) -> bool:
        share = self._limits.client_connections
        if share is None:
            share = (self._most_over_tcp if _is_over_tcp(who) else self._most) // 2
        share = max(1, share)
        has_it = self._of[who] >= share
        if has_it and self._now() - self._told_s > TELL_EVERY_S:
            self._told_s = self._now()
            log.warning(
                "%s has all the connections that one client may have, %d (server.client_connections), and is hung up "
                "on where it makes more: have its programs share one client",
                who,
                share,
                extra=event("client-has-its-share", client=who, clients=share),
            )
        return has_it


def _is_over_tcp(who: str) -> bool:
    """Whether that is none of the names that users have."""
    return not who.startswith("uid ")
