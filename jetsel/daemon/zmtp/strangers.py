"""Peers that are to show a key still: which of them makes room where another comes and there are as many as may be."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Generic, TypeVar

GRACE_S = 0.25  # that one has before another of its own network takes its place: a handshake takes three round trips
_PREFIX = 64  # of IPv6: all that one network hands out

Peer = TypeVar("Peer")


class Strangers(Generic[Peer]):
    """By network, the oldest first. For whoever holds the server's lock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._of: dict[str, dict[int, tuple[float, Peer]]] = {}  # by network, then by token
        self._network: dict[int, str] = {}

    def enter(self, token: int, network: str, peer: Peer) -> None:
        """Take up one that has come."""
        self._of.setdefault(network, {})[token] = self._now(), peer
        self._network[token] = network

    def leave(self, token: int) -> None:
        """One of them, or of others, is none any more."""
        network = self._network.pop(token, None)
        if network is not None:
            theirs = self._of[network]
            del theirs[token]
            if not theirs:
                del self._of[network]

    def first_to_go(self, network: str) -> Peer | None:
        """Return who makes room for one more of this network; None where that one is too many itself.

        That is the oldest of whoever has the most, so that many of one network never keep out another's first. Among
        its own, one that has just come is left to go on: many that come at once are to come to their end.
        """
        crowd = max(self._of, key=lambda each: (len(self._of[each]), each != network), default=None)
        if crowd is None:
            return None
        since_s, peer = next(iter(self._of[crowd].values()))
        return None if crowd == network and self._now() - since_s < GRACE_S else peer


def network_of(address: str) -> str:
    """Return whom an address stands for: itself, or its network where it is of IPv6."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(ipaddress.ip_network((int(found), _PREFIX), strict=False))
