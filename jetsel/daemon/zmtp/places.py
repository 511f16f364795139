"""Who may connect: places for all, a share for each user, and some that are kept for who must always get in."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable

from jetsel.config import Server
from jetsel.daemon import descriptors
from jetsel.daemon.identity import Identity
from jetsel.daemon.kept import TCP_SHARE, trusted_places
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

TELL_EVERY_S = 60.0  # at most, of those who have more than a share: they come back at once
TRUSTED = frozenset((0, os.getuid()))


class Places:
    """Counts connections, and tells the log who waits for one. For whoever holds the server's lock."""

    def __init__(self, limits: Server, elsewhere: Callable[[], int], now: Callable[[], float] = time.monotonic) -> None:
        """elsewhere: how many of the same places others have taken."""
        self._limits = limits
        self._elsewhere = elsewhere
        self._now = now
        self._of: Counter[int | None] = Counter()  # by uid; None: over tcp, where nobody is told from anybody
        self._is_full = False
        self._told_s = -TELL_EVERY_S
        self._most = max(0, min(limits.max_clients, descriptors.free()))

    @property
    def taken(self) -> int:
        """How many stand."""
        return self._of.total()

    def are_free(self, *, is_tcp: bool) -> bool:
        """Whether one more may come."""
        if is_tcp and self._of[None] >= int(self._most * TCP_SHARE):
            return False
        return self.taken + self._elsewhere() < self._most

    def somebody_waits(self) -> None:
        """Tell the log once that there is no place for who came."""
        if not self._is_full:
            self._is_full = True
            count = self.taken + self._elsewhere()
            log.warning(
                "%d clients are connected and more wait for a place: raise server.max_clients (%d), of which tcp "
                "has three quarters, or the limit of open files (%d)",
                count,
                self._limits.max_clients,
                descriptors.limit(),
                extra=event("clients-wait", clients=count),
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

    def enter(self, identity: Identity) -> bool:
        """Count one in; False where its user has all that one may have."""
        uid = _uid(identity)
        if uid is not None and uid not in TRUSTED:
            share = self._limits.client_connections
            share = max(1, self._most // 2 if share is None else share)
            others = self.taken + self._elsewhere() - sum(self._of[trusted] for trusted in TRUSTED)
            if self._of[uid] >= share:
                self._tell(identity, share)
                return False
            if others >= self._most - trusted_places(self._most):
                return False
        self._of[uid] += 1
        return True

    def leave(self, identity: Identity) -> None:
        """Count one out."""
        uid = _uid(identity)
        self._of[uid] -= 1
        if not self._of[uid]:
            del self._of[uid]

    def _tell(self, identity: Identity, share: int) -> None:
        if self._now() - self._told_s > TELL_EVERY_S:
            self._told_s = self._now()
            log.warning(
                "%s has all the connections that one client may have, %d (server.client_connections), and is hung up "
                "on where it makes more: have its programs share one client",
                identity.name,
                share,
                extra=event("client-has-its-share", client=identity.name, clients=share),
            )


def _uid(identity: Identity) -> int | None:
    return None if identity.credentials is None else identity.credentials[0]
