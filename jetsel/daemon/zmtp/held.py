"""What messages that are not whole take, of all peers together, and who is hung up on where that is too much."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from jetsel.daemon.zmtp.connection import Connection
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")


class Held:
    """For whoever holds the server's lock."""

    def __init__(self, most_mb: float) -> None:
        """most_mb: of all together."""
        self._most_bytes = most_mb * 1e6
        self._is_shedding = False
        self.bytes = 0

    def count(self, connection: Connection) -> None:
        """Take up what it holds now."""
        self.bytes += connection.held_bytes - connection.counted_bytes
        connection.counted_bytes = connection.held_bytes

    def forget(self, connection: Connection) -> None:
        """It is gone, and what it held."""
        self.bytes -= connection.counted_bytes
        connection.counted_bytes = 0

    def surplus(self, connections: Iterable[Connection]) -> list[Connection]:
        """Return who is to be hung up on so that the rest is within the limit; tell the log.

        Of whoever holds the most over all connections, the heaviest: many connections of one client shall not have
        another's only one ended.
        """
        if self.bytes <= self._most_bytes:
            self._is_shedding = False
            return []
        theirs: defaultdict[str, list[Connection]] = defaultdict(list)
        total: Counter[str] = Counter()
        for connection in sorted(connections, key=lambda c: c.counted_bytes):
            theirs[connection.identity.name].append(connection)
            total[connection.identity.name] += connection.counted_bytes
        found, left = [], self.bytes
        while left > self._most_bytes:
            ((greediest, _),) = total.most_common(1)
            found.append(theirs[greediest].pop())
            total[greediest] -= found[-1].counted_bytes
            left -= found[-1].counted_bytes
        self._tell(found)
        return found

    def _tell(self, found: Sequence[Connection]) -> None:
        if not self._is_shedding:
            self._is_shedding = True
            client = found[0].identity.name
            log.warning(
                "peers hold %.0f MB that nobody has taken yet (server.peers_mb: %g): %s is hung up on, and more "
                "until the rest is less",
                self.bytes / 1e6,
                self._most_bytes / 1e6,
                client,
                extra=event("peers-shed", client=client, held_mb=self.bytes / 1e6),
            )
        log.info("%d peers were hung up on to free memory", len(found), extra=event("peers-kept", count=len(found)))
