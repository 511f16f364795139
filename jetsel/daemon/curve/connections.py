"""The connections that stand: whose they are, how many each may have, and which hold the most that nobody has seen yet.

Some places are never theirs, however many come; see `jetsel.daemon.kept`. No address has more than a share.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from msgspec import Struct

from jetsel.daemon.curve import peers
from jetsel.daemon.curve.peers import Peer
from jetsel.daemon.kept import TCP_SHARE, trusted_places

HALF_OPEN = 64  # connections that have shown no key yet
GREET_S = 1.0  # where there are so many, those that took longer make room: a handshake takes four ways of the network
CURVE_BYTES = 64 + 2 + 168 + 16
"""What the daemon has sent at most to a peer that has shown no key: its greeting (ZeroMQ RFC 23), WELCOME after its
frame's head of two bytes (RFC 26), and ERROR with a status of three digits. READY, for one that has, is longer."""


class Connection(Struct, eq=False):
    """One that stands. received_bytes: when it last delivered a message."""

    descriptor: int
    peer: Peer
    since_s: float
    is_open: bool = False
    is_cut: bool = False
    received_bytes: int = 0
    delivered_s: float | None = None


class Connections:
    """For the gate's thread alone, but for `delivered`, which any thread may call."""

    def __init__(self, share: int | None, now: Callable[[], float] = time.monotonic) -> None:
        """share: how many one address may have; None: half of all."""
        self._share = share
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
                self._standing[descriptor] = Connection(descriptor, peer, self._now())
        for connection in self._standing.values():
            if not connection.is_open:
                passed = peers.passed(connection.descriptor)
                connection.is_open = passed is not None and passed.sent > CURVE_BYTES

    def standing(self) -> list[Connection]:
        """Return those that stood at the last look and were not hung up on."""
        return [connection for connection in self._standing.values() if not connection.is_cut]

    def delivered_at(self, connection: Connection) -> float | None:
        """Return when a whole message came over it last; None where none has."""
        at_s, inode = self._delivered.get(connection.descriptor, (None, None))
        return at_s if inode == connection.peer.inode else None

    def room(self, places: int, elsewhere: int) -> int:
        """Return how many may come before the next look. places: for all clients; elsewhere: how many others have.

        Where somebody is near a share, that is one: the next is looked at before there is another.
        """
        half_open = sum(not c.is_open for c in self._standing.values())
        most = min(int(places * TCP_SHARE), places - elsewhere - trusted_places(places))
        left = self.share(places) - max(self._counts().values(), default=0)
        return min(most - len(self), HALF_OPEN - half_open, max(1, left))

    def share(self, places: int) -> int:
        """How many one address may have."""
        return max(1, places // 2 if self._share is None else self._share)

    def surplus(self, places: int) -> tuple[list[Connection], list[str]]:
        """Return what is to be ended so that others find room, and who has more than a share.

        The newest of those that are too many, and those that hold up others and have not shown a key in time.
        """
        share, counts, ended = self.share(places), self._counts(), []
        greedy = [owner for owner, count in counts.items() if count > share]
        for connection in sorted(self.standing(), key=lambda c: -c.since_s):
            owner = connection.peer.owner
            if connection.is_open and counts[owner] > share:
                counts[owner] -= 1
                ended.append(connection)
        closed = [c for c in self._standing.values() if not c.is_open]
        if len(closed) >= HALF_OPEN:
            ended += [c for c in closed if self._now() - c.since_s > GREET_S and not c.is_cut]
        return ended, greedy

    def _counts(self) -> Counter[str]:
        """How many count for each share: without those that have shown no key, who shall not use up another's."""
        return Counter(c.peer.owner for c in self.standing() if c.is_open)

    def weigh(self) -> None:
        """Note what each had sent when it last delivered a message: what came before is no longer held here."""
        for descriptor, connection in self._standing.items():
            at_s = self.delivered_at(connection)
            if at_s != connection.delivered_s:
                connection.delivered_s = at_s
                if passed := peers.passed(descriptor):
                    connection.received_bytes = passed.received

    def heaviest(self) -> list[Connection]:
        """Return all that stand, those first that sent the most since they last delivered a message.

        Of those that are alike, the newest that never did, then those whose last one is longest ago.
        """

        def order(connection: Connection) -> tuple[int, bool, float]:
            passed = peers.passed(connection.descriptor)
            held_bytes = 0 if passed is None else passed.received - connection.received_bytes
            at_s = connection.delivered_s
            return -held_bytes, at_s is not None, -connection.since_s if at_s is None else at_s

        return sorted(self.standing(), key=order)

    @staticmethod
    def end(connection: Connection) -> bool:
        """Hang up on it; return whether it stood."""
        connection.is_cut = True
        return peers.hang_up(connection.descriptor, connection.peer.inode)
