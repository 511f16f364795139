"""The sampler's loop: reads the total on a schedule of absolute times and writes what is new into the ring.

Fast while a window is open, and for a moment after; slow otherwise. A reading that comes late does not move those after
it; one that comes so late that the next was due is counted as missed, and is not made up.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable

from jetsel.config import Power
from jetsel.power.sampling.accounts import Accounts
from jetsel.power.sampling.cadence import averaging_ns
from jetsel.power.sampling.report import Statistics
from jetsel.power.sampling.ring import NO_READING, TOLD, WANTED, Writer
from jetsel.power.sampling.total import Total

LINGER_NS = 100_000_000  # that it stays fast after the last window: requests come in bursts
PROBE_NS = 2_000_000_000  # from the start, as fast as it can whatever is asked for: to see how often values change
PROBE_INTERVAL_NS = 1_000_000
READS_A_PERIOD = 8  # of a sensor that repeats values: a change is seen within 1/8 of its period
NAP_NS = 5_000_000  # at the fast rate shorter sleeps are slept through; an opened window ends every other
WAITS_NS = 3_000_000  # a read that takes as long waits for its sensor; no bus takes that long for a few registers
NEW_READS = 1.5  # a sensor whose period was measured, and is no more reads than this, has a new value at each
LONGER = 1.5  # times what was told: chips keep their pace to 10 %, and a period that is found is exact to a few
FIRST_SEARCH_NS, LAST_SEARCH_NS = 3_000_000_000, 60_000_000_000  # from one search for the period to the next; doubled


class Loop:
    """The schedule, and what becomes of each reading."""

    def __init__(
        self,
        power: Power,
        total: Total,
        writer: Writer,
        words: memoryview,
        tell: Callable[[Statistics], None],
        connection: socket.socket,
    ) -> None:
        """words: the ring's header; tell: puts statistics where the daemon reads them; connection: to the daemon."""
        self._asked_ns = round(1e9 / power.rate_hz)
        self._slow_ns = round(1e9 / power.idle_rate_hz)
        self._total = total
        self._writer = writer
        self._words = words
        self._tell = tell
        self._connection = connection
        now_ns = time.monotonic_ns()
        self._accounts = Accounts(now_ns)
        self._statistics = self._accounts.statistics
        self._is_searching = False
        self._is_counted = self._is_fast = False
        self._told_ns = 0  # the period that the daemon has told, once it is taken over
        self._deadline_ns = now_ns
        self._interval_ns = PROBE_INTERVAL_NS
        self._fast_ns = self._probe_until_ns = self._fast_until_ns = self._search_ns = self._patience_ns = 0
        self._read_ns = 0  # the read before
        self._usual_ns = 0  # what a read takes, a running mean
        self._probe(now_ns)

    def run(self) -> None:
        """Sample until the daemon closes its end of the connection."""
        now_ns = time.monotonic_ns()
        while True:
            wait_ns = self._deadline_ns - now_ns
            if wait_ns > NAP_NS or (wait_ns > 0 and not self._is_fast):
                if select.select([self._connection], [], [], wait_ns / 1e9)[0]:
                    if not self._hear():
                        return
                    now_ns = time.monotonic_ns()
                    continue
            elif wait_ns > 0:
                time.sleep(wait_ns / 1e9)
            now_ns = self._sample()
            if now_ns >= self._accounts.over_ns:
                self._settle(now_ns)
                if not self._hear():
                    return

    def _sample(self) -> int:
        """Take the reading that is due and set the next deadline; return the time after it."""
        total = self._total
        power_uw = total.read_uw()
        if power_uw is None:
            self._statistics.failed += 1
            self._writer.append(total.end_ns, NO_READING)
        else:
            self._take(power_uw)
        deadline_ns, interval_ns = self._deadline_ns, self._interval_ns
        self._accounts.read(total.begin_ns - deadline_ns, total.end_ns - total.begin_ns)
        deadline_ns += interval_ns
        now_ns = time.monotonic_ns()
        if deadline_ns <= now_ns:
            skipped = (now_ns - deadline_ns) // interval_ns + 1
            if self._usual_ns < interval_ns:  # else it is the driver that waits for its sensor
                self._statistics.missed += skipped
            deadline_ns += skipped * interval_ns
        self._deadline_ns = deadline_ns
        self._pace(now_ns)
        return now_ns

    def _take(self, power_uw: int) -> None:
        """Write the reading down if it is new; see cadence.py for what is known of that.

        Its time is the middle between before and after the read where no update period is known; then each reading is
        new, as a value that stays equal has the same energy however often it is written down. Where one is known, each
        rail's value has a date of its own, see `_refresh`; the sum's is their mean, and half of what they average over
        before that.
        """
        total = self._total
        mid_ns = time_ns = total.mid_ns
        gap_ns = mid_ns - self._read_ns
        self._read_ns = mid_ns
        self._usual_ns += (total.end_ns - total.begin_ns - self._usual_ns) >> 4
        period_ns = self._period_ns
        if period_ns is not None:
            if not self._refresh(mid_ns, gap_ns, period_ns):
                self._statistics.repeated += 1
                return
            time_ns = sum(self._dates_ns) // len(self._dates_ns) - averaging_ns(period_ns) // 2
        if self._writer.append(time_ns, power_uw):
            self._statistics.samples += 1

    def _refresh(self, mid_ns: int, gap_ns: int, period_ns: int) -> bool:
        """Date the values of the rails; return whether any is new.

        One that changed appeared half-way between the read before and this one, at most a period ago. One that stays
        the same for longer than a period is a new one that happens to be the same, a period after the one before it.
        """
        dates_ns = self._dates_ns
        is_new = False
        for index, date_ns in enumerate(dates_ns):
            since_ns = mid_ns - date_ns
            if index in self._total.changes or gap_ns >= period_ns or since_ns >= 2 * period_ns + gap_ns:
                dates_ns[index] = mid_ns - min(gap_ns, period_ns) // 2
            elif since_ns >= period_ns + gap_ns:
                dates_ns[index] = date_ns + period_ns
            else:
                continue
            is_new = True
        return is_new

    def _pace(self, now_ns: int) -> None:
        """Choose between fast and slow."""
        if self._cadences is not self._total.cadences:
            self._probe(now_ns)
        if self._is_searching:
            self._search(now_ns)
        if self._words[WANTED] or self._is_searching:
            self._fast_until_ns = max(self._fast_until_ns, now_ns + LINGER_NS)
        is_fast = self._is_fast = now_ns < self._fast_until_ns
        is_counted = is_fast and now_ns >= self._probe_until_ns
        if is_counted != self._is_counted:
            self._is_counted = is_counted
            self._accounts.turn(is_counted, now_ns)
        interval_ns = self._fast_ns if is_fast else self._slow_ns
        if interval_ns != self._interval_ns:
            self._interval_ns = interval_ns
            self._deadline_ns = now_ns + interval_ns
        if self._total.retry_ns > now_ns:
            self._deadline_ns = self._total.retry_ns

    def _probe(self, now_ns: int) -> None:
        """Sample fast for a while, to see how often the values of rails that were just found change."""
        self._cadences = self._total.cadences
        self._dates_ns = [0 for _ in self._cadences]  # when each rail is taken to have got its last value
        self._probe_until_ns = self._search_ns = now_ns + PROBE_NS
        self._fast_until_ns = self._probe_until_ns + LINGER_NS
        self._fast_ns = PROBE_INTERVAL_NS
        self._patience_ns = FIRST_SEARCH_NS
        self._told_ns = 0  # to be taken over again
        self._period_ns: int | None = None
        self._publish()

    def _settle(self, now_ns: int) -> None:
        """Close a span of the accounts; begin a search for the update period now and then."""
        self._accounts.settle(now_ns)
        self._publish()
        if now_ns >= self._search_ns and not self._waits():
            for cadence in self._cadences:
                cadence.search()
            self._is_searching = True

    def _waits(self) -> bool:
        return self._usual_ns >= max(self._fast_ns, WAITS_NS)

    def _publish(self) -> None:
        """Put the statistics where the daemon reads them, with what is known of the sensor's period."""
        statistics = self._statistics
        bound_ns = max((each.bound_ns() for each in self._cadences), default=-1)
        self._heed(bound_ns)
        is_new = self._waits() or self._total.is_plain or 0 < self._told_ns <= NEW_READS * self._asked_ns
        statistics.period_ns = self._period_ns or -1
        statistics.bound_ns = -1 if is_new or self._period_ns is not None else bound_ns
        statistics.interval_ns = self._fast_ns
        self._tell(statistics)

    def _heed(self, bound_ns: int) -> None:
        """Take over the period that the daemon has told, unless what was seen disproves it or found another."""
        told_ns = int(self._words[TOLD])
        if told_ns != self._told_ns:
            self._told_ns = told_ns
            if self._found_ns() is None:
                self._set_period(told_ns if told_ns > NEW_READS * self._asked_ns else None)
        elif self._period_ns is not None and self._found_ns() is None and self._period_ns > 2 * bound_ns:
            self._set_period(None)

    def _found_ns(self) -> int | None:
        """Return the period that changes show. One that is longer than what was told is a clock of the load's own.

        A load that is switched on and off by a clock, a camera's for example, looks like a slow sensor; how fast the
        sensor is was told by who saw it change at random.
        """
        found_ns = self._total.period_ns
        return None if found_ns is not None and 0 < LONGER * self._told_ns < found_ns else found_ns

    def _set_period(self, period_ns: int | None) -> None:
        self._period_ns = period_ns
        self._fast_ns = max(self._asked_ns, (period_ns or 0) // READS_A_PERIOD)

    def _search(self, now_ns: int) -> None:
        """Go on with the search; at its end take over what was found."""
        for cadence in self._cadences:
            if cadence.is_searching:
                cadence.think()
                return
        self._is_searching = False
        found_ns = self._found_ns()
        if found_ns is not None or not self._told_ns:
            self._set_period(found_ns)
        self._search_ns = now_ns + self._patience_ns
        self._patience_ns = min(2 * self._patience_ns, LAST_SEARCH_NS)

    def _hear(self) -> bool:
        """Take what the daemon has sent; return whether it still lives. A window was opened: read now, and go on fast.

        That window may be shut again by now, and what is read now is the sample after it.
        """
        try:
            if not self._connection.recv(4096, socket.MSG_DONTWAIT):
                return False
        except BlockingIOError:
            return True
        except OSError:
            return False
        now_ns = time.monotonic_ns()
        self._fast_until_ns = max(self._fast_until_ns, now_ns + LINGER_NS)
        if now_ns >= self._total.retry_ns and not self._is_fast:
            self._deadline_ns = now_ns
        return True
