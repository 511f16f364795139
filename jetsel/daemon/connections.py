"""The connections that stand: whose they are, how many each may have, and which hold the most that nobody has seen yet.

Places are kept for who must always get in: some for ipc, which tcp never takes, and of those some for root and the
daemon's own user, who ask for status and reload. Nobody else has more than a share.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from msgspec import Struct

from jetsel.daemon import peers
from jetsel.daemon.peers import Peer

TCP_SHARE = 0.75  # of all places: the rest is for ipc
TRUSTED = 16  # places for root and the daemon's own user, an eighth of all where those are few
HALF_OPEN = 64  # tcp connections that have shown nothing yet
GREET_S = 1.0  # where there are so many, those that took longer make room: a handshake takes four ways of the network
GREETING_BYTES = 64  # ZeroMQ RFC 23, Greeting
CURVE_BYTES = GREETING_BYTES + 2 + 168 + 16
"""What the daemon has sent at most to a peer that has shown no key: its greeting, WELCOME after its frame's head of two
bytes (ZeroMQ RFC 26), and ERROR with a status of three digits. READY, for one that has, is longer."""


class Connection(Struct, eq=False):
    """One that stands. received_bytes: over tcp, when it last delivered. unread_bytes: over ipc, seen since then."""

    descriptor: int
    peer: Peer
    since_s: float
    is_open: bool
    is_cut: bool = False
    received_bytes: int = 0
    unread_bytes: int = 0
    delivered_s: float | None = None


class Connections:
    """For the gate's thread alone, but for `delivered`, which any thread may call."""

    def __init__(self, share: int | None, has_keys: bool, now: Callable[[], float] = time.monotonic) -> None:
        """share: how many one user or address may have; None: half of all.

        has_keys: without keys everybody over tcp is on loopback and the same, so there is nobody to share with.
        """
        self._share = share
        self._has_keys = has_keys
        self._now = now
        self._standing: dict[int, Connection] = {}
        self._delivered: dict[int, tuple[float, int | None]] = {}  # when, and over which inode

    def __len__(self) -> int:
        return len(self._standing)

    def delivered(self, descriptor: int) -> None:
        """Note that a whole message has come over this connection (zmq_msg_get(3), ZMQ_SRCFD)."""
        self._delivered[descriptor] = self._now(), peers.inode_of(descriptor)

    def look(self, watched: Mapping[int, int | None]) -> None:
        """Take in who came and left. watched: inodes by descriptor, None where the kernel does not tell them."""
        inodes = {fd: peers.inode_of(fd) if inode is None else inode for fd, inode in watched.items()}
        for descriptor, known in list(self._standing.items()):
            if inodes.get(descriptor) != known.peer.inode:
                del self._standing[descriptor]
        for descriptor, inode in inodes.items():
            if descriptor not in self._standing and (peer := peers.who(descriptor)) and peer.inode == inode:
                self._standing[descriptor] = Connection(descriptor, peer, self._now(), is_open=not peer.is_tcp)
        for connection in self._standing.values():
            if not connection.is_open:
                connection.is_open = self._is_through(connection.descriptor)

    def standing(self) -> list[Connection]:
        """Return those that stood at the last look and were not hung up on."""
        return [connection for connection in self._standing.values() if not connection.is_cut]

    def delivered_at(self, connection: Connection) -> float | None:
        """Return when a whole message came over it last; None where none has."""
        at_s, inode = self._delivered.get(connection.descriptor, (None, None))
        return at_s if inode == connection.peer.inode else None

    def _is_through(self, descriptor: int) -> bool:
        passed = peers.passed(descriptor)
        if passed is None:
            return False
        return passed.sent > CURVE_BYTES if self._has_keys else passed.received > GREETING_BYTES

    @property
    def over_tcp(self) -> int:
        """How many of them are."""
        return sum(c.peer.is_tcp for c in self._standing.values())

    def room(self, places: int) -> tuple[int, int]:
        """Return how many may come over ipc, and over tcp, before the next look. places: for all of them together.

        Where somebody is near a share, that is one: the next is looked at before there is another.
        """
        half_open = sum(not c.is_open for c in self._standing.values())
        most_tcp = int(places * TCP_SHARE)
        ipc = places - len(self)
        tcp = min(most_tcp - self.over_tcp, ipc - trusted_places(places), HALF_OPEN - half_open)
        counts = self._counts()
        left = min(
            self.share(places) - max(counts.values(), default=0),
            places - trusted_places(places) - sum(not c.peer.is_trusted for c in self._standing.values()),
        )
        batch = max(1, left)
        return min(ipc, batch), min(tcp, batch)

    def share(self, places: int) -> int:
        """How many one user or address may have."""
        return max(1, places // 2 if self._share is None else self._share)

    def surplus(self, places: int) -> tuple[list[Connection], list[str]]:
        """Return what is to be ended so that others find room, and who has more than a share.

        The newest of those that are too many, and tcp connections that hold up others and have not greeted in time.
        """
        share, counts, ended = self.share(places), self._counts(), []
        greedy = [owner for owner, count in counts.items() if count > share]
        others = sum(not c.peer.is_trusted for c in self._standing.values())
        for connection in sorted(self._standing.values(), key=lambda c: -c.since_s):
            peer = connection.peer
            if peer.is_trusted or connection.is_cut or not connection.is_open:
                continue
            is_too_many = not peer.is_tcp and others > places - trusted_places(places)
            if counts[peer.owner] > share or is_too_many:
                counts[peer.owner] -= 1
                others -= 1
                ended.append(connection)
        closed = [c for c in self._standing.values() if not c.is_open]
        if len(closed) >= HALF_OPEN:
            ended += [c for c in closed if self._now() - c.since_s > GREET_S and not c.is_cut and c not in ended]
        return ended, greedy

    def _counts(self) -> Counter[str]:
        """How many count for each share: without those that have shown no key, who shall not use up another's."""
        return Counter(
            c.peer.owner
            for c in self._standing.values()
            if c.is_open and not c.peer.is_trusted and not c.is_cut and (self._has_keys or not c.peer.is_tcp)
        )

    def weigh(self) -> None:
        """Note what each sends: over tcp the kernel counts; over ipc what waits to be read shows it, time and again.

        What came before the last whole message is no longer held here.
        """
        for descriptor, connection in self._standing.items():
            at_s = self.delivered_at(connection)
            if at_s != connection.delivered_s:
                connection.delivered_s, connection.unread_bytes = at_s, 0
                if connection.peer.is_tcp and (passed := peers.passed(descriptor)):
                    connection.received_bytes = passed.received
            if not connection.peer.is_tcp:
                connection.unread_bytes += peers.unread(descriptor)

    def heaviest(self) -> list[Connection]:
        """Return all that stand, those first that received the most since they last delivered a message.

        Of those that are alike, the newest that never did, then those whose last one is longest ago.
        """

        def order(connection: Connection) -> tuple[int, bool, float]:
            held_bytes = connection.unread_bytes
            if connection.peer.is_tcp and (passed := peers.passed(connection.descriptor)):
                held_bytes = passed.received - connection.received_bytes
            at_s = connection.delivered_s
            return -held_bytes, at_s is not None, -connection.since_s if at_s is None else at_s

        return sorted((c for c in self._standing.values() if not c.is_cut), key=order)

    @staticmethod
    def end(connection: Connection) -> bool:
        """Hang up on it; return whether it stood."""
        connection.is_cut = True
        return peers.hang_up(connection.descriptor, connection.peer.inode)


def trusted_places(places: int) -> int:
    """How many of so many places are kept for root and the daemon's own user."""
    return min(TRUSTED, places // 8)
