"""How far a recording is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

Phase = Literal["reading", "recording", "timing", "metering"]

Tell = Callable[[str, int, int], None]
"""Told which phase it is, how many are done, and of how many."""
Stop = threading.Event
"""Set where the work shall end at the next photograph."""


def progress(phase: Phase, total: int, tell: Tell | None) -> Callable[[int], None]:
    """Tell that none of the total is done, and return what tells how many are."""

    def reach(done: int) -> None:
        if tell is not None:
            tell(phase, done, total)

    reach(0)
    return reach
