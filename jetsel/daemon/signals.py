"""The signals that steer the daemon, recorded from its first moment; importing this loads nothing heavy."""

from __future__ import annotations

import contextlib
import queue
import signal
from types import FrameType

LONGEST_WAIT_S = 1.0  # in case a signal comes just before the main thread sleeps


class Signals:
    """Counts the received signals; the main thread makes the only instance."""

    def __init__(self) -> None:
        self.stops = 0  # SIGTERM and SIGINT: the first drains the daemon, the second stops it at once
        self._hangups = 0
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()  # signal handlers may call `put` at any point
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._hang_up)

    def wait(self, limit_s: float = LONGEST_WAIT_S) -> None:
        """Sleep until a signal comes, `wake` is called, or limit_s is over."""
        with contextlib.suppress(queue.Empty):
            self._wakeups.get(timeout=limit_s)

    def wake(self) -> None:
        """End one wait; any thread may call."""
        self._wakeups.put(None)

    def take_hangup(self) -> bool:
        """Whether SIGHUP came since the last call."""
        count, self._hangups = self._hangups, 0
        return count > 0

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stops += 1
        self.wake()

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        self._hangups += 1
        self.wake()
