"""How far a recording is, told a few times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

Phase = Literal["reading", "recording", "timing", "metering"]

EVERY_S = 0.25


Tell = Callable[[str, int, int], None]
"""Told which phase it is, how many are done, and of how many."""
Stop = threading.Event
"""Set where the work shall end at the next photograph."""


class Reporter:
    """Tells how far a phase is: at its start, at its end, and at most four times a second between."""

    def __init__(self, phase: Phase, total: int, tell: Tell | None, now: Callable[[], float] = time.monotonic) -> None:
        self._phase = phase
        self._total = total
        self._tell = tell
        self._now = now
        self._told = now() - EVERY_S
        self.reach(0)

    def reach(self, done: int) -> None:
        """Say that `done` of the total are done, unless it was said just now and there is more to come."""
        now = self._now()
        if self._tell is None or (done != self._total and now - self._told < EVERY_S):
            return
        self._told = now
        self._tell(self._phase, done, self._total)
