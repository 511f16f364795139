"""The board's total power as one number: the sum of the rails that make it, found again when they vanish."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable

from jetsel.config import Power
from jetsel.power.finding import Found, find
from jetsel.power.sampling.cadence import Cadence
from jetsel.power.sampling.messages import Word
from jetsel.power.sampling.plain import is_plain
from jetsel.power.sensors.rail import RailError

FIRST_PAUSE_NS = 10_000_000  # after a failure, doubled with every further one
LONGEST_PAUSE_NS = 30_000_000_000
PATIENCE = 3  # failures before the rails are looked for again; a driver that was bound anew has other paths


class Total:
    """The rails of the total while they can be read.

    `begin_ns`, `mid_ns` and `end_ns` are before, in the middle of and after the last read, of CLOCK_MONOTONIC;
    `changes` are the rails that had another value than before. `is_plain`: no sensor is behind them, see plain.py.
    """

    def __init__(self, power: Power, say: Callable[[Word], None]) -> None:
        """Find the rails; `say` is told now, and whenever what was found changes."""
        self._power = power
        self._say = say
        self._found: Found | None = None
        self._failures = 0
        self._word: Word | None = None
        self._reads: tuple[tuple[int, Callable[[], int]], ...] = ()
        self._last: list[int | None] = []
        self.cadences: list[Cadence] = []
        self.is_plain = False
        self.retry_ns = 0  # not to be read before
        self.begin_ns = self.mid_ns = self.end_ns = 0
        self.changes: list[int] = []
        self._look()

    @property
    def period_ns(self) -> int | None:
        """The longest update period among the rails, None where each read may find a new value."""
        return max((each.period_ns for each in self.cadences if each.period_ns is not None), default=None)

    def read_uw(self) -> int | None:
        """Return the sum in microwatts, None where there is no reading; then the time to try again is `retry_ns`."""
        before_ns = self.mid_ns
        self.begin_ns = begin_ns = time.monotonic_ns()
        if self._failures and not self._is_worth_trying(begin_ns):
            self.end_ns = time.monotonic_ns()
            return None
        total_uw = 0
        last = self._last
        changes = []
        try:
            for index, read in self._reads:
                value = read()
                if value != last[index]:
                    last[index] = value
                    changes.append(index)
                total_uw += value
        except RailError as error:
            self._failed(str(error))
            self.end_ns = time.monotonic_ns()
            return None
        self.end_ns = end_ns = time.monotonic_ns()
        self.mid_ns = mid_ns = (begin_ns + end_ns) >> 1
        self.changes = changes
        if before_ns:
            for index in changes:
                self.cadences[index].changed(before_ns, mid_ns, last[index] or 0)
        if self._failures:
            self._failures = 0
            self._tell(None)
        return total_uw

    def close(self) -> None:
        """Close the rails."""
        if self._found is not None:
            self._found.close()
        self._found, self._reads = None, ()

    def _is_worth_trying(self, now_ns: int) -> bool:
        if now_ns >= self.retry_ns and not self._reads:
            self._look()
        return now_ns >= self.retry_ns and bool(self._reads)

    def _failed(self, reason: str) -> None:
        self._failures += 1
        self._wait()
        if self._failures >= PATIENCE:
            self._look()
            if self._reads:  # it could be read while it was looked for, and yet
                self._tell(reason)

    def _wait(self) -> None:
        pause_ns = min(FIRST_PAUSE_NS << min(self._failures, 32), LONGEST_PAUSE_NS)
        self.retry_ns = time.monotonic_ns() + pause_ns

    def _look(self) -> None:
        """Find the rails; where there is no total, say why and when to look again."""
        self.close()
        self._found = found = find(self._power)
        if not found.total:
            self._failures += 1
            self._wait()
            self._tell(found.reason or "no rails make the total")
            self.close()
            return
        self._reads = tuple((index, rail.read_uw) for index, rail in enumerate(found.total))
        self._last = [None] * len(found.total)
        self.cadences = [Cadence() for _ in found.total]
        self.is_plain = all(is_plain(rail.where) for rail in found.total)
        self.mid_ns = 0  # the first reading is no change
        if not self._failures:  # else after the first reading
            self._tell(None)
        gc.collect()  # which is off: what was built while looking is not kept for ever

    def _tell(self, reason: str | None) -> None:
        found = self._found
        earlier = self._word
        if found is not None and found.total:
            steps = [rail.resolution_w for rail in found.total]
            known = [step for step in steps if step is not None]
            # Errors of rounding are independent of each other: their squares add up.
            resolution_w = math.hypot(*known) if len(known) == len(steps) else None
            total_of = list(found.total_of)
        else:
            resolution_w = earlier.resolution_w if earlier else None
            total_of = earlier.total_of if earlier else []
        dropped = [(each.name, each.reason) for each in found.dropped] if found else earlier.dropped if earlier else []
        word = Word(total_of, reason, dropped, resolution_w)
        if word != earlier:
            self._word = word
            self._say(word)
