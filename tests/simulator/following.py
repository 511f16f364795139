"""The power of real work: idle power, and more for each core that a process and its children keep busy.

Source: clock_getcpuclockid(3): Linux numbers the CPU clock of process PID as (~PID << 3) | 2, and it counts all threads
of the process, those that ended too, in nanoseconds.
"""

from __future__ import annotations

import bisect
import contextlib
import time
from array import array
from pathlib import Path

from tests.processes import family_of

TICK_NS = 2_000_000  # how often the clocks are read; power is taken to be constant in between
FAMILY_NS = 50_000_000  # how often new children are looked for
_CPUCLOCK_SCHED = 2  # linux/posix-timers.h


class Following:
    """The energy of a process's work, as far as its clocks were read: call `tick` every TICK_NS."""

    def __init__(self, idle_w: float, busy_w: float) -> None:
        self._idle_w = idle_w
        self._busy_w = busy_w
        self._at_ns = array("q", [0])
        self._cpu_ns = array("q", [0])  # of all work since `follow`, at each of those times
        self._each_ns: dict[int, int] = {}  # by process: its clock when last read; it stays when the process ends
        self._alive: list[int] = []
        self._root: int | None = None
        self._family_ns = 0
        self._begin_ns = 0
        self._before_ns = 0  # what the process had worked before it was followed

    @property
    def active(self) -> bool:
        return self._root is not None

    def follow(self, pid: int, begin_ns: int) -> None:
        """Count the work of `pid` and its children from now on; begin_ns: CLOCK_MONOTONIC of the beginning.

        Raises ProcessLookupError where there is no such process.
        """
        if not Path(f"/proc/{pid}").exists():
            raise ProcessLookupError(f"there is no process {pid}")
        self._root, self._begin_ns = pid, begin_ns
        self._alive = family_of(pid)
        self._read_clocks()
        self._before_ns = sum(self._each_ns.values()) - self._cpu_ns[-1]
        self.tick()

    def tick(self) -> None:
        """Read the clocks."""
        if self._root is None:
            return
        now_ns = time.monotonic_ns() - self._begin_ns
        if now_ns - self._family_ns >= FAMILY_NS:
            self._family_ns = now_ns
            self._alive = family_of(self._root)
        self._read_clocks()
        self._at_ns.append(now_ns)
        self._cpu_ns.append(sum(self._each_ns.values()) - self._before_ns)

    def energy_j(self, at_ns: int) -> float:
        """Return joules from the beginning; nothing is known of the work after the last tick, so it is as before."""
        if at_ns > self._at_ns[-1]:
            self.tick()
        return (self._idle_w * at_ns + self._busy_w * self._work_ns(at_ns)) * 1e-9

    def _work_ns(self, at_ns: int) -> float:
        after = bisect.bisect_right(self._at_ns, at_ns)
        if after == len(self._at_ns):
            return self._cpu_ns[-1]
        if after == 0:
            return 0.0
        since_ns, until_ns = self._at_ns[after - 1], self._at_ns[after]
        before, then = self._cpu_ns[after - 1], self._cpu_ns[after]
        return before + (then - before) * (at_ns - since_ns) / (until_ns - since_ns)

    def _read_clocks(self) -> None:
        for pid in self._alive:
            with contextlib.suppress(OSError):  # it has ended
                self._each_ns[pid] = time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
