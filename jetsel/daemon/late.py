"""Replies whose peer was at its high-water mark: they wait for it to read on, for a while, and so many of them."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable

MOST = 4096  # of all peers together
MOST_OF_ONE = 1024  # of one peer: it cannot take the room of all others
PATIENCE_S = 2.0  # how long one waits before it is lost
RETRY_MS = 5

Frames = tuple[bytes, ...]  # the first names the peer


class LateReplies:
    """For whoever holds the socket's lock."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[float, Frames]] = deque()  # until when, and what
        self._of: Counter[bytes] = Counter()
        self._retry_s = 0.0

    def keep(self, frames: Frames) -> bool:
        """Keep one to try again; False where there is no room for it."""
        if len(self.waiting) >= MOST or self._of[frames[0]] >= MOST_OF_ONE:
            return False
        self._of[frames[0]] += 1
        self.waiting.append((time.monotonic() + PATIENCE_S, frames))
        return True

    def retry(self, send: Callable[[Frames], bool]) -> int:
        """Send what can be sent by now, of each peer up to the first that cannot; return how many are given up.

        send: returns False where the peer is at its high-water mark still.
        """
        now = time.monotonic()
        if now < self._retry_s:
            return 0
        self._retry_s = now + RETRY_MS / 1e3
        late, self.waiting = self.waiting, deque()
        full: set[bytes] = set()
        lost = 0
        for give_up_s, frames in late:
            peer = frames[0]
            if peer not in full and send(frames):
                continue
            full.add(peer)
            if now < give_up_s:
                self.waiting.append((give_up_s, frames))
            else:
                lost += 1
        self._of = Counter(frames[0] for _, frames in self.waiting)
        return lost
