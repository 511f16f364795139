"""The sampler as the daemon uses it: windows open and shut, and what was sampled meanwhile.

A thread starts the process, listens for what it says and for its end, and starts it again; it sleeps between. No thread
of the daemon does anything for a sample.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jetsel.bell import Bell
from jetsel.config import Power
from jetsel.events import event
from jetsel.power.samples import Samples
from jetsel.power.sampling.cadence import SLOWEST_NS
from jetsel.power.sampling.changes import Changes
from jetsel.power.sampling.child import LEAVE_S, Child, ChildError
from jetsel.power.sampling.messages import Word
from jetsel.power.sampling.reader import Reader
from jetsel.power.sampling.report import Report, Statistics, report
from jetsel.power.sampling.ring import NO_READING, POWER, SIZE, TIME, TOLD, WANTED
from jetsel.power.sensors.rail import Dropped

log = logging.getLogger("jetsel.power")

F_SEAL_SHRINK = 0x0002  # fcntl(2): so that nothing takes mapped pages away
_WATCH_S = 5.0
_LOOK_S = 2e-4
STALE_S, STALE_AFTER = 0.25, 3
"""The newest sample stands for so long, or so many of the times between samples if that is longer."""
_NEW_GAPS = 3  # readings: the least that the proof of cadence.py is good to, for a sensor with a new value at each


@dataclass(frozen=True)
class Rules:
    """How long the process may be silent, and how often it is started again."""

    hello_s: float = 60.0  # a board reads Python from a slow card; 1,024-sample averages of six rails take as long
    silent_s: float = 60.0  # without a record
    first_pause_s: float = 0.1  # before it is started again; doubled with every further death
    longest_pause_s: float = 30.0
    lived_s: float = 60.0  # after which a death counts as the first


RULES = Rules()


class Sampler:
    """Samples of the board's total power. Every method may be called from any thread."""

    def __init__(
        self,
        power: Power,
        changed: Callable[[], None] = lambda: None,
        rules: Rules = RULES,
        period_ms: float | None = None,
    ) -> None:
        """Start to sample; `ready` waits until the sensors were looked for.

        changed: called by a thread of the sampler whenever `total_of` or `reason` is another than before.
        period_ms: see `tell`. Raises OSError where there is no memory for the samples.
        """
        self._power = power
        self._changed = changed
        self._rules = rules
        self._fd = os.memfd_create("jetsel-power", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._fd, SIZE)
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, F_SEAL_SHRINK)
        self._memory = mmap.mmap(self._fd, SIZE)
        self._header = np.frombuffer(self._memory, np.int64)
        self.tell(period_ms)
        self._reader = Reader(self._memory)
        self._lock = threading.Lock()  # of what is open, and of the child
        self._open = 0
        self._child: Child | None = None
        self._word = Word([], "the sampler is not started yet", [], None)
        self._said = threading.Event()
        self._restarts = 0
        self._bell = Bell()
        self._closing = False
        self._changes = Changes()
        self._thread = threading.Thread(target=self._run, name="power-sampler", daemon=True)
        self._thread.start()

    @property
    def total_of(self) -> tuple[str, ...]:
        """The names of the rails whose sum is sampled, as far as they were ever found."""
        return tuple(self._word.total_of)

    @property
    def reason(self) -> str | None:
        """Why no samples come, None while they do."""
        return self._word.reason

    @property
    def pid(self) -> int | None:
        """The process that samples, None where none runs."""
        child = self._child
        return None if child is None else child.pid

    def ready(self, limit_s: float) -> bool:
        """Wait until the sensors were looked for, whether or not there are any; False at the limit."""
        return self._said.wait(limit_s)

    def open(self) -> None:
        """Sample fast from now on, until as many `shut` as `open` were called. The first reading is at once."""
        with self._lock:
            self._open += 1
            self._header[WANTED] = self._open
            if self._open == 1 and self._child is not None:
                self._child.wake()

    def shut(self) -> None:
        """Take one `open` back."""
        with self._lock:
            self._open -= 1
            self._header[WANTED] = self._open

    def wait(self, until_ns: int, limit_s: float) -> bool:
        """Wait until a sample of `until_ns` (CLOCK_MONOTONIC) or later is there; False at the limit."""
        limit_ns = time.monotonic_ns() + round(limit_s * 1e9)
        while not ((newest := self._reader.newest()).size and newest[0, TIME] >= until_ns):
            if self._closing or time.monotonic_ns() >= limit_ns:
                return False
            time.sleep(_LOOK_S)
        return True

    def samples(self, begin_ns: int, end_ns: int) -> Samples:
        """Return the samples between two times of CLOCK_MONOTONIC, with one neighbour on each side if there is one.

        Every sample of the last minute or more is kept; of the last 9 hours, the mean of each second. Where the samples
        are no longer kept, a mean takes their place as two samples, at both ends of its second, so that the trapezoid
        over them has the energy that there was. It is NaN where a part of its second could not be read. NaN also marks
        where the process had died: nothing is known from the sample before it to the one after it. While the sensor's
        period is not known, all readings are there, and `bound_s` is what it cannot be longer than.
        """
        times_ns, power_w = self._reader.between(begin_ns, end_ns)
        statistics = self._statistics()
        period_ns = max(statistics.period_ns, self._spacing_ns(statistics), statistics.read_ns)
        bound_s = statistics.bound_ns / 1e9 if statistics.bound_ns > 0 else None
        return Samples(times_ns, power_w, self._word.resolution_w, period_ns / 1e9, bound_s)

    def latest(self) -> tuple[int, float] | None:
        """Return time and watts of the newest sample, None where the last reading failed or is too old.

        Too old: the process has missed three of the times at which it should have had another.
        """
        newest = self._reader.newest()
        if not newest.size or newest[0, POWER] == NO_READING or self.reason is not None:
            return None
        statistics = self._statistics()
        spacing_ns = max(statistics.period_ns, statistics.read_ns, 1e9 / self._power.idle_rate_hz)
        if time.monotonic_ns() - newest[0, TIME] > max(STALE_S * 1e9, STALE_AFTER * spacing_ns):
            return None
        return int(newest[0, TIME]), float(newest[0, POWER]) / 1e6

    @property
    def slow_hz(self) -> float:
        """How often it samples while nothing is open."""
        return self._power.idle_rate_hz

    @property
    def period_ms(self) -> float | None:
        """How often the sensor has a new value, to be kept and told to a later sampler; None while that is not known.

        Where each reading was seen to be a new one, the time between two readings.
        """
        statistics = self._statistics()
        spacing_ns = self._spacing_ns(statistics)
        if statistics.period_ns > 0:
            return statistics.period_ns / 1e6
        return spacing_ns / 1e6 if statistics.bound_ns <= _NEW_GAPS * spacing_ns else None

    def tell(self, period_ms: float | None) -> None:
        """Tell the process what `period_ms` was earlier; it holds until the process finds another. None: not known."""
        self._header[TOLD] = round((period_ms or 0.0) * 1e6)

    def report(self) -> Report:
        """Return how the sampling goes."""
        word = self._word
        dropped = tuple(Dropped(name, reason) for name, reason in word.dropped)
        known = Statistics.read(self._memory) if self._child is not None else None
        return report(known, tuple(word.total_of), word.reason, dropped, self._restarts)

    def stop(self) -> None:
        """End the process and the thread. What was sampled can still be read."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
        self._bell.ring()
        self._thread.join()
        self._bell.close()
        os.close(self._fd)

    def _statistics(self) -> Statistics:
        """What the process last wrote of itself; before that, nothing is known of the sensor's period."""
        return Statistics.read(self._memory) or Statistics(bound_ns=SLOWEST_NS)

    def _spacing_ns(self, statistics: Statistics) -> float:
        return statistics.interval_ns if statistics.interval_ns > 0 else 1e9 / self._power.rate_hz

    # The thread.

    def _run(self) -> None:
        deaths = 0
        while not self._closing:
            began_s = time.monotonic()
            why = self._live()
            if self._closing:
                return
            deaths = 1 if time.monotonic() - began_s >= self._rules.lived_s else deaths + 1
            self._restarts += 1
            reason = f"the power sampler ended: {why}; it is being started again"
            if reason != self._word.reason:
                log.error("%s", reason, extra=event("sampler-died"))
            self._hear(Word(self._word.total_of, reason, self._word.dropped, self._word.resolution_w), quiet=True)
            self._rest(min(self._rules.first_pause_s * 2.0 ** (deaths - 1), self._rules.longest_pause_s))

    def _live(self) -> str:
        """Start a process and listen to it until it ends; return why it did."""
        try:
            child = Child(self._power, self._fd)
        except ChildError as error:
            return str(error)
        with self._lock:
            self._child = child
            if self._open:
                child.wake()
        patience_s = 0.2  # one that closed its end is about to end
        try:
            why = self._listen(child)
            if why is None:
                why, patience_s = "it was silent for too long, and was killed", 0.0
        except ChildError as error:
            why = str(error)
        with self._lock:
            self._child = None
        how = child.end(LEAVE_S if self._closing else patience_s)
        return f"{why} ({how})"

    def _listen(self, child: Child) -> str | None:
        """Take in what it says until the sampler is stopped; None where it said and wrote nothing for too long."""
        count, heard_s, limit_s = self._reader.count(), time.monotonic(), self._rules.hello_s
        is_new = True
        while not self._closing:
            self._sleep(min(_WATCH_S, limit_s), child.fd)
            self._changes.look(time.monotonic())
            for word in child.receive():
                if is_new:
                    rails = " + ".join(word.total_of) or "nothing"
                    told = event("sampler-started", pid=child.pid, rail=word.total_of)
                    log.info("power sampler %d reads %s", child.pid, rails, extra=told)
                self._hear(word, quiet=False)
                is_new, heard_s, limit_s = False, time.monotonic(), self._rules.silent_s
            if self._reader.count() != count:
                count, heard_s = self._reader.count(), time.monotonic()
            if time.monotonic() - heard_s > limit_s:
                return None
        return "it was stopped"

    def _hear(self, word: Word, quiet: bool) -> None:
        earlier, self._word = self._word, word
        if not quiet and word.reason != earlier.reason and (word.reason is not None or self._said.is_set()):
            self._changes.add(word, time.monotonic())
        self._said.set()
        if (word.total_of, word.reason) != (earlier.total_of, earlier.reason):
            self._changed()

    def _rest(self, pause_s: float) -> None:
        over_s = time.monotonic() + pause_s
        while not self._closing and (left_s := over_s - time.monotonic()) > 0:
            self._sleep(left_s)

    def _sleep(self, limit_s: float, child_fd: int | None = None) -> None:
        """Sleep until the bell rings, the process says something or ends, or the limit."""
        poll = select.poll()
        poll.register(self._bell.fd, select.POLLIN)
        if child_fd is not None:
            poll.register(child_fd, select.POLLIN)
        if self._bell.fd in {fd for fd, _ in poll.poll(max(limit_s, 0.001) * 1e3)}:
            self._bell.heard()
