"""How long a call waits and which failures it tries again: only those that say so, and only while there is time."""

from __future__ import annotations

import random
import time

from jetsel.errors import JetselError, NoDaemonError, NoReplyError

FIRST_PAUSE_S = 0.01  # a queue of 10 ms photographs has moved on by then
LONGEST_PAUSE_S = 0.5  # a daemon that starts again is ready in seconds
MOST_LOSSES = 2
"""A restart loses a request once. A request that loses its connection each time is itself the cause."""


class CrowdedError(NoReplyError):
    """A daemon listens, and so many wait to be let in that the kernel has no room for one more (connect(2), EAGAIN)."""


class Attempts:
    """The clock of one call: `timeout_ms` ends the waiting, `deadline_ms` is what the photograph is answered within."""

    def __init__(self, timeout_ms: float, deadline_ms: float | None = None) -> None:
        self._began_s = time.monotonic()
        self.timeout_ms = timeout_ms
        self._deadline_ms = deadline_ms
        self._pause_s = FIRST_PAUSE_S
        self._losses = 0
        self._was_answered = False

    @property
    def left_ms(self) -> float:
        """Milliseconds until the call gives up; 0 or less when it must."""
        return self.timeout_ms - self._elapsed_ms

    @property
    def deadline_left_ms(self) -> float | None:
        """Milliseconds of the request's deadline that are left for the next attempt, or None where it has none."""
        return None if self._deadline_ms is None else self._deadline_ms - self._elapsed_ms

    def pause_s(self, error: JetselError) -> float | None:
        """Return how long to pause before the next attempt, doubling each time; None where the error is final.

        Final: it does not say `retry`; no daemon was there from the start; the connection was lost again and again; or
        the next attempt would begin past the timeout or the deadline.
        """
        if not error.retry or (isinstance(error, NoDaemonError) and not self._was_answered):
            return None
        self._was_answered = True
        self._losses += isinstance(error, NoReplyError) and not isinstance(error, CrowdedError)
        pause_s = self._pause_s * random.uniform(0.5, 1.0)  # so that refused clients do not all come back at once
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        left_ms = min(self.left_ms, self.left_ms if self.deadline_left_ms is None else self.deadline_left_ms)
        return None if self._losses > MOST_LOSSES or pause_s * 1e3 >= left_ms else pause_s

    @property
    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._began_s) * 1e3
