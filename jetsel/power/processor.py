"""Whether the machine is at rest: what its cores did since the last look, this process's own work left out."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from jetsel.power.sysfs import text

BUSY_CORES = 0.1
"""Cores that others may keep busy: a desktop or a board at rest takes 1 to 3 % of all of its cores."""
_TICKS = os.sysconf("SC_CLK_TCK")


class OtherWork:
    """Looks from when it is made; each question is about the time since the one before."""

    def __init__(self) -> None:
        self._before = _seen()

    def found(self) -> str | None:
        """Return why the machine was not at rest since the last look, None where it was or nothing tells."""
        (then_s, then_busy_s), (now_s, now_busy_s) = self._before, _seen()
        self._before = now_s, now_busy_s
        if then_busy_s is None or now_busy_s is None or now_s - then_s < 0.1:
            return None
        cores = (now_busy_s - then_busy_s) / (now_s - then_s)
        if cores <= BUSY_CORES:
            return None
        return f"other programs kept {cores:.2f} cores busy (where they always do, add --with-load)"


class Processor(NamedTuple):
    """How long the cores were busy, all together, and how long the hypervisor took them, since start-up."""

    busy_s: float
    stolen_s: float
    cores: int


def processor(root: Path) -> Processor | None:
    """Read proc/stat below this folder; None where it does not tell.

    proc(5): user, nice, system, idle, iowait, irq, softirq, steal, ...
    """
    lines = text(root / "proc/stat").splitlines()
    total = lines[0].split()[1:9] if lines else []
    if len(total) < 8:
        return None
    user, nice, system, _, _, irq, softirq, steal = (int(ticks) / _TICKS for ticks in total)
    cores = sum(line.startswith("cpu") for line in lines) - 1
    return Processor(user + nice + system + irq + softirq, steal, cores)


def _seen() -> tuple[float, float | None]:
    """The time, and the processor time of all but this process since start-up; None where it is not told."""
    found = processor(Path("/"))
    return time.monotonic(), None if found is None else found.busy_s - time.process_time()
