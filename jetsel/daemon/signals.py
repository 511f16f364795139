"""The signals that steer the daemon, noted from its first moment on; importing this loads nothing heavy.

A handler of Python's runs between two steps of the main thread, and no step is taken while that sleeps: a signal that
came between the last step and the sleep would wait with it for ever. What ends the sleep is therefore the byte that
CPython writes to a pipe the moment the signal comes, in whichever thread (signal.set_wakeup_fd). The handler counts.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType

from jetsel.bell import Bell

_PART_BYTES = 4096


class Signals:
    """Counts of what came; the main thread's. Made once, there."""

    def __init__(self) -> None:
        self.stops = 0  # SIGTERM and SIGINT: the first has the daemon drain, the second stop at once
        self._hangups = 0
        self._bell = Bell()
        self._poll = select.poll()
        self._poll.register(self._bell.fd, select.POLLIN)
        self._came_fd, came = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll.register(self._came_fd, select.POLLIN)
        signal.set_wakeup_fd(came, warn_on_full_buffer=False)  # a full pipe ends the sleep as well
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._hang_up)

    def wait(self, limit_s: float | None = None) -> None:
        """Sleep until a signal comes, `wake` is called, or the limit is over."""
        roused = {fd for fd, _ in self._poll.poll(None if limit_s is None else limit_s * 1e3)}
        if self._bell.fd in roused:
            self._bell.heard()
        if self._came_fd in roused:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._came_fd, _PART_BYTES):  # its handler has been asked for before the byte came
                    pass

    def wake(self) -> None:
        """End one wait; any thread may call."""
        self._bell.ring()

    def take_hangup(self) -> bool:
        """Whether SIGHUP came since the last call, however often."""
        count, self._hangups = self._hangups, 0
        return count > 0

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stops += 1

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        self._hangups += 1
