"""Replies, or what is left of them, for peers that read slowly: tried again for a while, then lost."""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable

from jetsel.daemon.zmtp.connection import NEWS, Connection

MOST = 4096  # of all peers together
MOST_OF_ONE = 1024  # of one peer: it cannot take the room of all others
PATIENCE_S = 2.0  # how long one waits before it is lost
RETRY_MS = 5


class _Late:
    """What is left of one message. until_s: when it is given up, unless it has begun."""

    __slots__ = ("has_begun", "is_reply", "rest", "until_s")

    def __init__(self, rest: memoryview, until_s: float, *, has_begun: bool, is_reply: bool) -> None:
        self.rest = rest
        self.until_s = until_s
        self.has_begun = has_begun
        self.is_reply = is_reply


class LateReplies:
    """For whoever holds the server's lock."""

    def __init__(self, epoll: select.epoll, now: Callable[[], float]) -> None:
        """epoll: tells of those who read on."""
        self._epoll = epoll
        self._now = now
        self._of: dict[Connection, deque[_Late]] = {}
        self._look_s = 0.0
        self.lost = 0  # replies, not what else was to be said

    def __bool__(self) -> bool:
        return bool(self._of)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._of

    def write(self, connection: Connection, data: bytes, *, is_reply: bool) -> None:
        """Send what goes now, behind what waits for this peer, and keep the rest. Raises OSError: it is gone."""
        waiting = self._of.get(connection)
        rest = memoryview(data) if waiting else connection.send(data)
        if not rest:
            return
        has_begun = len(rest) < len(data)
        if not has_begun and (len(waiting or ()) >= MOST_OF_ONE or sum(map(len, self._of.values())) >= MOST):
            self.lost += is_reply
            return
        if waiting is None:
            waiting = self._of[connection] = deque()
            self._epoll.modify(connection.fd, NEWS | select.EPOLLOUT)
        waiting.append(_Late(rest, self._now() + PATIENCE_S, has_begun=has_begun, is_reply=is_reply))

    def are_due(self, now_s: float) -> bool:
        """Whether it is time to try again."""
        return bool(self._of) and now_s >= self._look_s

    def try_again(self, now_s: float, most_in_one_s: float) -> list[Connection]:
        """Send on where a peer reads again, and give up what has waited enough.

        Return whom to hang up on: those that are gone, and those that read no more of one that has begun for so long.
        """
        self._look_s = now_s + RETRY_MS / 1e3
        return [c for c, waiting in list(self._of.items()) if not self._go_on(c, waiting, now_s, most_in_one_s)]

    def _go_on(self, connection: Connection, waiting: deque[_Late], now_s: float, most_in_one_s: float) -> bool:
        try:
            while waiting:
                first = waiting[0]
                rest = connection.send(first.rest)
                first.has_begun |= len(rest) < len(first.rest)
                first.rest = rest
                if rest:
                    break
                waiting.popleft()
        except OSError:
            return False
        kept = [one for one in waiting if one.has_begun or now_s < one.until_s]
        self.lost += sum(one.is_reply for one in waiting) - sum(one.is_reply for one in kept)
        waiting.clear()
        waiting.extend(kept)
        if not kept:
            del self._of[connection]
            self._epoll.modify(connection.fd, NEWS)
        return not kept or now_s <= kept[0].until_s + most_in_one_s

    def forget(self, connection: Connection) -> None:
        """It is hung up on: what waits for it is lost."""
        self.lost += sum(one.is_reply for one in self._of.pop(connection, ()))
