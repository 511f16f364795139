"""The signals that steer the daemon, noted from its first moment on; importing this loads nothing heavy.

A handler runs between any two steps of the main thread, so it takes no lock: it counts, and rings a bell.
"""

from __future__ import annotations

import select
import signal
from types import FrameType

from jetsel.bell import Bell


class Signals:
    """Counts of what came; the main thread's. Made once."""

    def __init__(self) -> None:
        self.stops = 0  # SIGTERM and SIGINT: the first has the daemon drain, the second stop at once
        self._hangups = 0
        self._bell = Bell()
        self._poll = select.poll()
        self._poll.register(self._bell.fd, select.POLLIN)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._hang_up)

    def wait(self, limit_s: float | None = None) -> None:
        """Sleep until a signal comes, `wake` is called, or the limit is over."""
        if self._poll.poll(None if limit_s is None else limit_s * 1e3):
            self._bell.heard()

    def wake(self) -> None:
        """End one wait; any thread may call."""
        self._bell.ring()

    def take_hangup(self) -> bool:
        """Whether SIGHUP came since the last call, however often."""
        count, self._hangups = self._hangups, 0
        return count > 0

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stops += 1
        self._bell.ring()

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        self._hangups += 1
        self._bell.ring()
