"""Who connects and delivers nothing, or stops in the middle of a message: they are hung up on once their time is over.

libzmq's own heartbeats (ZMQ_HEARTBEAT_IVL) would find them, and end the process: where a peer hangs up while it waits
for its messages to be read, the next heartbeat fails an assertion (libzmq 4.3.5, src/stream_engine_base.cpp,
`out_event`; zeromq/libzmq issue 4841).

What is seen instead: over each connection, whether a whole message has come in its first seconds; and, from the
kernel's count of bytes, whether it is in the middle of a later one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from jetsel.daemon.curve import peers
from jetsel.daemon.curve.connections import Connection, Connections

LOOKS = 4  # in the time that a peer has
LEAST_BYTES = 4096  # between two looks: less may be a client's own heartbeats, of some 50 bytes each


class _Arrival(Struct, eq=False):
    """What came over one connection since it last delivered a message. since_s: None where nothing did."""

    inode: int
    delivered_s: float
    received: int
    since_s: float | None = None


class Stalls:
    """For the gate's thread."""

    def __init__(self, timeout_s: float, connections: Connections, now: Callable[[], float] = time.monotonic) -> None:
        self.next_s = timeout_s / LOOKS
        self._timeout_s = timeout_s
        self._connections = connections
        self._now = now
        self._due_s = now() + self.next_s
        self._arrivals: dict[int, _Arrival] = {}

    def look(self) -> None:
        """Hang up on those whose time is over, if it is time to look."""
        if self._now() < self._due_s:
            return
        self._due_s = self._now() + self.next_s
        standing = self._connections.standing()
        found = {}
        for connection in standing:
            at_s = self._connections.delivered_at(connection)
            if at_s is None:
                begun_s: float | None = connection.since_s
            else:
                arrival = self._arrived(connection, at_s)
                found[connection.descriptor] = arrival
                begun_s = arrival.since_s
            if begun_s is not None and self._now() - begun_s > self._timeout_s:
                self._connections.end(connection)
        self._arrivals = found

    def _arrived(self, connection: Connection, delivered_s: float) -> _Arrival:
        passed = peers.passed(connection.descriptor)
        received = 0 if passed is None else passed.received
        known = self._arrivals.get(connection.descriptor)
        if known is None or known.inode != connection.peer.inode or known.delivered_s != delivered_s:
            return _Arrival(connection.peer.inode, delivered_s, received)
        if known.since_s is None and received - known.received >= LEAST_BYTES:
            known.since_s = self._now()
        known.received = received
        return known
