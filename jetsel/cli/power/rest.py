"""Whether the machine is at rest: what its cores did since the last look, the sampler's own work left out."""

from __future__ import annotations

import os
import time
from pathlib import Path

from jetsel.power.sampling.sampler import Sampler

BUSY_CORES = 0.1
"""Cores that others may keep busy: a desktop or a board at rest takes 1 to 3 % of all of its cores."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Rest:
    """Looks from when it is made; each question is about the time since the one before."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._before = self._seen()

    def broken(self) -> str | None:
        """Return why the machine was not at rest since the last look, None where it was or nothing tells."""
        before, now = self._before, self._seen()
        self._before = now
        (then_s, then_busy_s), (now_s, now_busy_s) = before, now
        if then_busy_s is None or now_busy_s is None or now_s - then_s < 0.1:
            return None
        cores = (now_busy_s - then_busy_s) / (now_s - then_s)
        if cores <= BUSY_CORES:
            return None
        return f"other programs kept {cores:.2f} cores busy (where they always do, add --with-load)"

    def _seen(self) -> tuple[float, float | None]:
        """The time, and the processor time of all but this process and the sampler; None where it is not told."""
        all_s = _busy_s()
        if all_s is None:
            return time.monotonic(), None
        return time.monotonic(), all_s - time.process_time() - _process_s(self._sampler.pid)


def _busy_s() -> float | None:
    """Processor time of all cores since start-up (proc(5), stat: user, nice, system, idle, iowait, irq, softirq)."""
    try:
        user, nice, system, _, _, irq, softirq = (
            int(ticks) for ticks in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:8]
        )
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq) / _TICKS


def _process_s(pid: int | None) -> float:
    """Processor time of a process (proc(5), stat: fields 14 and 15, counted after the name's bracket)."""
    if pid is None:
        return 0.0
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS
