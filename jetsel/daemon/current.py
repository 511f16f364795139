"""The snapshot that requests begin with now, and older ones that still have requests."""

from __future__ import annotations

import threading
from collections import Counter

from jetsel.daemon.resources import trim
from jetsel.daemon.snapshot import Snapshot


class Current:
    """One reference to the snapshot that serves. Any thread may call.

    A request keeps the snapshot that it began with; an old one frees its engines after its last request.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.standing: tuple[Snapshot, ...] = (snapshot,)  # newest first; behind it those that still have requests
        self.is_ready = False  # every model is loaded
        self.is_closed = False  # the daemon stops: only what was admitted is answered
        self.progress: str | None = None  # of the loading at the start, in words
        self._lock = threading.Lock()
        self._requests: Counter[Snapshot] = Counter()

    @property
    def state(self) -> str:
        """As `status` tells it: loading, ready or stopping."""
        return "stopping" if self.is_closed else "ready" if self.is_ready else "loading"

    def enter(self) -> Snapshot:
        """Return the snapshot that serves now, with one request counted in."""
        with self._lock:
            self._requests[self.snapshot] += 1
            return self.snapshot

    def leave(self, snapshot: Snapshot) -> None:
        """Count out a request that has ended."""
        with self._lock:
            self._requests[snapshot] -= 1
        if snapshot is not self.snapshot:
            self._free_unused()

    def swap(self, following: Snapshot) -> None:
        """Have new requests begin with this one."""
        with self._lock:
            self.standing = (following, *self.standing)
            self.snapshot = following
        self._free_unused()

    def _free_unused(self) -> None:
        with self._lock:
            unused = [old for old in self.standing[1:] if not self._requests[old]]
            self.standing = tuple(kept for kept in self.standing if kept not in unused)
            for old in unused:
                del self._requests[old]
        for old in unused:
            old.close(*self.standing)
        if unused:
            trim()
