"""Whether the machine is at rest: what its cores did since the last look, this process's own work left out."""

from __future__ import annotations

import os
import time
from pathlib import Path

BUSY_CORES = 0.1
"""Cores that others may keep busy: a desktop or a board at rest takes 1 to 3 % of all of its cores."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Rest:
    """Looks from when it is made; each question is about the time since the one before."""

    def __init__(self) -> None:
        self._before = _seen()

    def broken(self) -> str | None:
        """Return why the machine was not at rest since the last look, None where it was or nothing tells."""
        (then_s, then_busy_s), (now_s, now_busy_s) = self._before, _seen()
        self._before = now_s, now_busy_s
        if then_busy_s is None or now_busy_s is None or now_s - then_s < 0.1:
            return None
        cores = (now_busy_s - then_busy_s) / (now_s - then_s)
        if cores <= BUSY_CORES:
            return None
        return f"other programs kept {cores:.2f} cores busy (where they always do, add --with-load)"


def _seen() -> tuple[float, float | None]:
    """The time, and the processor time of all but this process since start-up; None where it is not told.

    proc(5), stat: user, nice, system, idle, iowait, irq, softirq.
    """
    try:
        user, nice, system, _, _, irq, softirq = (
            int(ticks) for ticks in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:8]
        )
    except (OSError, ValueError):
        return time.monotonic(), None
    return time.monotonic(), (user + nice + system + irq + softirq) / _TICKS - time.process_time()
