"""A simulated board: the files of a TX2 whose total shows a power that is known, as a sensor that averages has it."""

from __future__ import annotations

import contextlib
import threading
import time
from types import TracebackType

from tests.processes import family_of
from tests.system.boards import Board

_CPUCLOCK_SCHED = 2  # linux/posix-timers.h


class Work:
    """The energy of a process's work, its children's too: so many watts at rest, and more for each core they keep busy.

    clock_getcpuclockid(3): Linux numbers the CPU clock of process PID as (~PID << 3) | 2; it counts all its threads.
    """

    def __init__(self, idle_w: float, busy_w: float) -> None:
        self._idle_w, self._busy_w = idle_w, busy_w
        self._root: int | None = None
        self._each_s: dict[int, float] = {}  # by process, as it was last read: it stays when the process ends
        self._before_s = 0.0

    def follow(self, pid: int) -> None:
        """Count the work of this process from now on."""
        self._root = pid
        self._before_s = self._worked_s()

    def joules(self) -> float:
        """Return the joules until now, from some beginning."""
        return self._idle_w * time.monotonic() + self._busy_w * (self._worked_s() - self._before_s)

    def _worked_s(self) -> float:
        for pid in family_of(self._root) if self._root is not None else ():
            with contextlib.suppress(OSError):  # it has ended
                self._each_s[pid] = time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
        return sum(self._each_s.values())


class Simulated:
    """Has a board show a new value every so often, each the mean power since the one before, while `with` lasts."""

    def __init__(self, board: Board, work: Work, period_s: float = 0.05) -> None:
        self._board, self._work, self._period_s = board, work, period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Simulated:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        joules, at_s = self._work.joules(), time.monotonic()
        while not self._over.wait(self._period_s):
            now_j, now_s = self._work.joules(), time.monotonic()
            self._board.power((now_j - joules) / (now_s - at_s))
            joules, at_s = now_j, now_s
