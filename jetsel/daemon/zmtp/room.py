"""The memory for messages that are not whole: whose are read on, whose wait, and who is hung up on if need be.

A message that has begun is promised the room for all of it. Where that is more than there is, one of whoever has most
is read no further until others are whole, so that its peer waits and loses nothing. What stalls meanwhile gives its
promise back. So a peer is hung up on only where messages that nobody ends fill the room by themselves.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence

from jetsel.daemon.zmtp.connection import Connection
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

TELL_EVERY_S = 60.0  # at most, of those who wait


class Room:
    """For whoever holds the server's lock."""

    def __init__(self, most_mb: float, now: Callable[[], float]) -> None:
        """most_mb: for all together."""
        self._most_bytes = most_mb * 1e6
        self._now = now
        self._promised: dict[Connection, int] = {}  # bytes still to come of those that are read on, as they began
        self._at_sweep: dict[Connection, int] = {}  # what was promised then
        self._waiting: dict[Connection, float] = {}  # since when, in their order
        self._may_go_on = False  # some of these, as far as is known
        self._is_shedding = False
        self._told_s = -TELL_EVERY_S
        self.bytes = 0  # that are here
        self.promised_bytes = 0  # that are still to come, of all that are read on

    def count(self, connection: Connection) -> None:
        """Take up what it holds now, and what is still to come of what it was promised."""
        self.bytes += connection.held_bytes - connection.counted_bytes
        connection.counted_bytes = connection.held_bytes
        if connection in self._promised:
            self._promise(connection, connection.to_come_bytes)

    def has_for(self, connection: Connection, all_: Iterable[Connection]) -> bool:
        """Whether its message is read on now, for which others may have to wait; tells the log where it has to."""
        self.count(connection)
        if connection not in self._promised:
            self._promise(connection, connection.to_come_bytes)
        if not self._is_over:
            return True
        theirs = self._of_each(all_)
        reading: defaultdict[str, list[Connection]] = defaultdict(list)
        for each in self._promised:
            reading[each.identity.name].append(each)
        while self._is_over and len(self._promised) > 1:  # one is read on, or none would ever be whole
            greediest = max(reading, key=theirs.__getitem__)
            last = reading[greediest].pop()
            if not reading[greediest]:
                del reading[greediest]
            theirs[greediest] -= self._promised[last]
            self._wait(last)
        return connection in self._promised

    def waits(self, connection: Connection) -> bool:
        """Whether it is not to be read now; for one of which there is news."""
        waits = connection in self._waiting
        self._may_go_on |= waits
        return waits

    def has_its_time(self, connection: Connection) -> bool:
        """Whether what it has sent waits for us, and its time does not pass."""
        return connection in self._waiting and connection.may_have_unread

    def go_on(self, all_: Iterable[Connection]) -> list[Connection]:
        """Return those that are to be read on, for whom there is room by now, first of whoever has least."""
        if not self._may_go_on:
            return []
        self._may_go_on = False
        lines: defaultdict[str, deque[Connection]] = defaultdict(deque)
        for connection in self._waiting:
            if connection.may_have_unread:
                lines[connection.identity.name].append(connection)
        theirs, found = self._of_each(all_), []
        while lines:
            least = min(lines, key=theirs.__getitem__)
            first = lines[least][0]
            to_come = first.to_come_bytes
            if self._promised and self.bytes + self.promised_bytes + to_come > self._most_bytes:
                break
            lines[least].popleft()
            if not lines[least]:
                del lines[least]
            theirs[least] += to_come
            waited_s = self._now() - self._waiting.pop(first)
            if first.begun_s is not None:
                first.begun_s += waited_s
            self._promise(first, to_come)
            found.append(first)
        return found

    def sweep(self, unread: Collection[int]) -> None:
        """Let those wait that have sent nothing since the last call, where others do. unread: descriptors."""
        if not self._waiting:
            self._at_sweep = {}
            return
        for connection, to_come in self._at_sweep.items():
            if self._promised.get(connection) == to_come and connection.fd not in unread:
                self._wait(connection)
        self._at_sweep = dict(self._promised)

    def forget(self, connection: Connection) -> None:
        """It is gone, and what it held."""
        self.bytes -= connection.counted_bytes
        connection.counted_bytes = 0
        self._promise(connection, 0)
        self._waiting.pop(connection, None)
        self._may_go_on = bool(self._waiting)

    def surplus(self, all_: Iterable[Connection]) -> list[Connection]:
        """Return who is to be hung up on so that what is here is within the limit; tell the log.

        Of whoever holds the most over all connections, the heaviest: many connections of one client shall not have
        another's only one ended.
        """
        if self.bytes <= self._most_bytes:
            self._is_shedding = False
            return []
        theirs: defaultdict[str, list[Connection]] = defaultdict(list)
        total: Counter[str] = Counter()
        for connection in sorted(all_, key=lambda c: c.counted_bytes):
            theirs[connection.identity.name].append(connection)
            total[connection.identity.name] += connection.counted_bytes
        found, left = [], self.bytes
        while left > self._most_bytes:
            ((greediest, _),) = total.most_common(1)
            found.append(theirs[greediest].pop())
            total[greediest] -= found[-1].counted_bytes
            left -= found[-1].counted_bytes
        self._tell_of(found)
        return found

    @property
    def _is_over(self) -> bool:
        return self.bytes + self.promised_bytes > self._most_bytes

    def _of_each(self, all_: Iterable[Connection]) -> Counter[str]:
        """What each client has, here and promised."""
        found: Counter[str] = Counter()
        for connection in all_:
            found[connection.identity.name] += connection.counted_bytes + self._promised.get(connection, 0)
        return found

    def _promise(self, connection: Connection, to_come: int) -> None:
        self.promised_bytes += to_come - self._promised.get(connection, 0)
        if to_come:
            self._promised[connection] = to_come  # in its old place, if it has one
        elif self._promised.pop(connection, None):
            self._may_go_on = bool(self._waiting)

    def _wait(self, connection: Connection) -> None:
        self._promise(connection, 0)
        self._waiting[connection] = self._now()
        if self._now() - self._told_s >= TELL_EVERY_S:
            self._told_s = self._now()
            client = connection.identity.name
            log.info(
                "more is sent at once than may be held (server.peers_mb: %g): %s waits, and perhaps others, until "
                "there is room",
                self._most_bytes / 1e6,
                client,
                extra=event("peers-wait", client=client, held_mb=self.bytes / 1e6),
            )

    def _tell_of(self, found: Sequence[Connection]) -> None:
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
