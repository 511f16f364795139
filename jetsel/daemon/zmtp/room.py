"""The memory for messages that are not whole: whose are read on, whose wait, and who is hung up on if need be.

A large frame is read on when there is room for all of it, and its peer waits until then and loses nothing. Room is
handed out in turns: to the client that has least, and among its connections to the first that came. What is too slow to
end in its time gives its room back while others wait. So a peer is hung up on only where messages that nobody ends fill
the memory by themselves.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence

from jetsel.daemon.zmtp.connection import Connection
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

FOR_LARGE = 7 / 8  # of the memory is promised to large frames: the rest is for small ones, which never wait:
SMALL_BYTES = 65_536  # or less is missing of them, and
SMALL_ONES = 16  # at least have room in that rest
OF_ONE_CLIENT = 1 / 2  # of the memory is the most that one client has, unless it has a single large frame
HEAD_BYTES = 2048  # of a message are read, while others wait, to see how large it is
TELL_EVERY_S = 60.0  # at most, of those who wait


class Room:
    """For whoever holds the server's lock. A client is known by whose place its connections have; see Places."""

    def __init__(self, most_mb: float, timeout_s: float, now: Callable[[], float]) -> None:
        """most_mb: for all together. timeout_s: for one message."""
        self._most_bytes = most_mb * 1e6
        self._small_bytes = min(SMALL_BYTES, (1 - FOR_LARGE) * self._most_bytes / SMALL_ONES)
        self._timeout_s = timeout_s
        self._now = now
        self._promised: dict[Connection, int] = {}  # bytes still to come of the large ones that are read on
        self._at_sweep: dict[Connection, int] = {}  # what was promised then to those that it still is
        self._waiting: dict[Connection, float | None] = {}  # in their order; since when there is more of theirs
        self._may_go_on = False  # some of these, as far as is known
        self._swept_s = now()
        self._is_shedding = False
        self._told_s = -TELL_EVERY_S
        self.bytes = 0  # that are here
        self.promised_bytes = 0  # that are still to come, of all that are read on

    @property
    def does_somebody_wait(self) -> bool:
        """Whether there is no room for all."""
        return bool(self._waiting)

    @property
    def is_something_unread(self) -> bool:
        """Whether one that waits has sent more."""
        return any(since_s is not None for since_s in self._waiting.values())

    def count(self, connection: Connection) -> None:
        """Take up what it holds now, and what is still to come of what it was promised."""
        gained = connection.counted_bytes - connection.held_bytes
        self.bytes -= gained
        connection.counted_bytes = connection.held_bytes
        if connection in self._promised:
            self._promise(connection, min(self._promised[connection], connection.to_come_bytes))
        if gained > 0 and self._waiting:
            self._may_go_on = True

    def has_for(self, connection: Connection) -> bool:
        """Whether the rest of its frame is read now, or waits until `go_on` returns it; the log is told of that."""
        self.count(connection)
        to_come = connection.to_come_bytes
        if to_come <= self._promised.get(connection, 0):
            return True
        self._promise(connection, 0)  # that was for the part before
        if to_come <= self._small_bytes:
            return True
        if not self._waiting and self.bytes + self.promised_bytes + to_come <= OF_ONE_CLIENT * self._most_bytes:
            self._promise(connection, to_come)
            return True
        self._wait(connection)
        self._may_go_on = True  # perhaps for this one: its turn is then
        return False

    def waits(self, connection: Connection) -> bool:
        """Whether it is not to be read now; for one that has sent more."""
        if connection not in self._waiting:
            return False
        if self._waiting[connection] is None:
            self._waiting[connection] = self._now()
            self._may_go_on = True
        return True

    def has_its_time(self, connection: Connection) -> bool:
        """Whether what it has sent waits for us, and its time does not pass."""
        return self._waiting.get(connection) is not None

    def go_on(self, all_: Iterable[Connection]) -> list[Connection]:
        """Return those that are to be read on, for whom there is room by now."""
        if not self._may_go_on:
            return []
        self._may_go_on = False
        lines: defaultdict[str, deque[Connection]] = defaultdict(deque)
        for connection, since_s in self._waiting.items():
            if since_s is not None:
                lines[connection.place].append(connection)
        if not lines:
            return []
        theirs, reading = self._of_each(all_), {connection.place for connection in self._promised}
        found = []
        while lines:
            least = min(lines, key=theirs.__getitem__)
            next_ = lines[least][0]
            if not self._fits(next_):
                break  # nor does any other pass it
            if least in reading and theirs[least] + next_.to_come_bytes > OF_ONE_CLIENT * self._most_bytes:
                del lines[least]
                continue
            lines[least].popleft()
            if not lines[least]:
                del lines[least]
            theirs[least] += next_.to_come_bytes
            reading.add(least)
            self._resume(next_)
            found.append(next_)
        if not self._promised:  # what stands still leaves too little room, and somebody has to come to an end
            fitting = (connection for line in lines.values() for connection in line if self._fits(connection))
            found.append(next(fitting, lines[least][0]))
            self._resume(found[-1])
        return found

    def sweep(self) -> list[Connection]:
        """Let those wait that would not end in their time if they went on as since the last call, where others do.

        Return them.
        """
        share = (self._now() - self._swept_s) / self._timeout_s
        self._swept_s = self._now()
        slow = [
            connection
            for connection, to_come in self._at_sweep.items()
            if self._waiting and to_come - self._promised[connection] < share * connection.frame_bytes
        ]
        for connection in slow:
            self._wait(connection)
        self._at_sweep = dict(self._promised)
        return slow

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
            theirs[connection.place].append(connection)
            total[connection.place] += connection.counted_bytes
        found, left = [], self.bytes
        while left > self._most_bytes:
            ((greediest, _),) = total.most_common(1)
            found.append(theirs[greediest].pop())
            total[greediest] -= found[-1].counted_bytes
            left -= found[-1].counted_bytes
        self._tell_of(found)
        return found

    def _fits(self, connection: Connection) -> bool:
        free = FOR_LARGE * self._most_bytes - self.bytes - self.promised_bytes
        return connection.to_come_bytes <= max(free, self._small_bytes)  # what is nearly whole makes more room yet

    def _of_each(self, all_: Iterable[Connection]) -> Counter[str]:
        """What each client has, here and promised."""
        found: Counter[str] = Counter()
        for connection in all_:
            found[connection.place] += connection.counted_bytes + self._promised.get(connection, 0)
        return found

    def _promise(self, connection: Connection, to_come: int) -> None:
        self.promised_bytes += to_come - self._promised.get(connection, 0)
        if to_come:
            self._promised[connection] = to_come
        elif self._promised.pop(connection, None):
            self._at_sweep.pop(connection, None)
            self._may_go_on = bool(self._waiting)

    def _resume(self, connection: Connection) -> None:
        since_s = self._waiting.pop(connection)
        if since_s is not None and connection.begun_s is not None:
            connection.begun_s += self._now() - since_s
        self._promise(connection, connection.to_come_bytes)

    def _wait(self, connection: Connection) -> None:
        self._promise(connection, 0)
        self._waiting[connection] = self._now() if connection.may_have_unread else None
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
