"""Bounds what libzmq holds for peers: past it, those are hung up on that sent the most and delivered nothing.

A message is seen only when it is whole, and libzmq bounds a frame, not a message: one that never ends grows until
memory ends. libzmq tells of no bytes either. So the process's memory is watched for what nothing else explains.
"""

from __future__ import annotations

import ctypes
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from jetsel.daemon.curve.connections import Connections
from jetsel.daemon.memory import resident_mb
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

FILLS_MB_PER_S = 2000.0  # all peers together: what a unix socket carries on a fast core
OFTEN_S, SELDOM_S = 0.02, 0.25  # between two looks: as soon as half of what is left may be filled
ALONE_S = 1.0  # where nobody is connected
WEIGH_SHARE = 0.125  # of the limit, from which on it is noted who sends
RELOADING = 2.0  # times what it held: the models that are loaded stand beside the others until these are let go
TRIM_EVERY_S = 1.0


class Excess:
    """For the gate's thread."""

    def __init__(self, most_mb: float, connections: Connections, now: Callable[[], float] = time.monotonic) -> None:
        """most_mb: above what the daemon held when it was ready, and what its requests take.

        accounted_mb tells the latter, and None while models load.
        """
        self.accounted_mb: Callable[[], float | None] = lambda: None
        self._most_mb = most_mb
        self._connections = connections
        self._now = now
        self._looked_s = -ALONE_S
        self._own_mb: float | None = None
        self._is_loading = True
        self._peers_mb = 0.0
        self._trimmed_s = -TRIM_EVERY_S
        self._cut = 0
        self._at_once = 1

    def look(self) -> None:
        """Look at the memory if it is time to."""
        if self._now() < self._looked_s + self.next_s:
            return
        self._looked_s = self._now()
        held_mb, accounted_mb = resident_mb(), self.accounted_mb()
        if held_mb is not None:
            self._settle(held_mb, accounted_mb)
            if self._own_mb is not None:
                own_mb = self._own_mb * (RELOADING if accounted_mb is None else 1.0)
                self._bound(held_mb - own_mb - (accounted_mb or 0.0))

    @property
    def next_s(self) -> float:
        """How long there is from one look to the next."""
        if self._is_loading:
            return OFTEN_S
        if not len(self._connections):
            return ALONE_S
        return min(max((self._most_mb - self._peers_mb) / 2 / FILLS_MB_PER_S, OFTEN_S), SELDOM_S)

    def _settle(self, held_mb: float, accounted_mb: float | None) -> None:
        """Learn what the daemon holds by itself: when it is ready, after each reload, and while nobody is connected."""
        if not len(self._connections):
            self._peers_mb = 0.0
        if accounted_mb is not None and (self._own_mb is None or self._is_loading or not len(self._connections)):
            self._own_mb = held_mb - accounted_mb - self._peers_mb
        elif accounted_mb == 0.0 and self._own_mb is not None:
            self._own_mb = min(self._own_mb, held_mb)  # it cannot be more: peers held what was taken for its own
        self._is_loading = accounted_mb is None

    def _bound(self, peers_mb: float) -> None:
        if not self._is_loading:
            self._peers_mb = max(0.0, peers_mb)
        if peers_mb > WEIGH_SHARE * self._most_mb:
            self._connections.weigh()
        if peers_mb <= self._most_mb:
            self._end_spell()
        elif self._now() - self._trimmed_s > TRIM_EVERY_S:
            self._trimmed_s = self._now()
            give_back()  # what is free already: the next look tells whether that was it
        else:
            self._shed(peers_mb)

    def _shed(self, peers_mb: float) -> None:
        """Hang up on the heaviest, on twice as many at each look, until the rest is within the limit."""
        heaviest = self._connections.heaviest()[: self._at_once]
        if not heaviest:
            # All are gone, so this is the daemon's own: larger models at work, or what it will not give back.
            self._own_mb = (self._own_mb or 0.0) + peers_mb
            self._end_spell()
            return
        if not self._cut:
            owner = heaviest[0].peer.owner
            log.warning(
                "peers hold %.0f MB that nobody has taken yet (server.peers_mb: %g): %s is hung up on, and more "
                "until the rest is less",
                peers_mb,
                self._most_mb,
                owner,
                extra=event("peers-shed", client=owner, held_mb=peers_mb),
            )
        self._cut += sum(self._connections.end(connection) for connection in heaviest)
        self._at_once *= 2

    def _end_spell(self) -> None:
        if self._cut:
            log.info("%d peers were hung up on to free memory", self._cut, extra=event("peers-kept", count=self._cut))
        self._cut, self._at_once = 0, 1


def give_back() -> None:
    """Return what malloc keeps free to the system (malloc_trim(3), which is glibc's)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
