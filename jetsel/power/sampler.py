"""Reads the board's total power in a thread, at a steady rate, and stores the samples of the last minutes."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import random
import threading
import time
from collections import deque
from typing import NamedTuple

from jetsel.base.events import event
from jetsel.power.finding import FoundRails, PowerSettings, find_rails
from jetsel.power.integration import STALE_PERIODS, STALE_S, EnergySum, Sample, add_up
from jetsel.power.sensors.rail import RailError
from jetsel.wire.power import DroppedRail

log = logging.getLogger("jetsel.power")

KEPT_S = 120.0
SLOWEST_S = 1.0
"""A repeated reading counts as a new sensor value after this time, which no INA3221 value outlasts.

That is 860 ms for the mean of 1,024 conversions of 140 us of each of six (TI SBOS576); NVIDIA's setting gives 430 ms.
"""

PATIENCE = 3  # failures in a row before a new search for rails: a driver that was loaded again has other paths
LOOK_AGAIN_S = 10.0
READY_S = 60.0  # a board may load Python from a slow card


class _LastValues(NamedTuple):
    """The last reading of each rail of the total, in uW or uJ, and the time since which they have not changed."""

    by_rail: list[int]
    since_ns: int


class Sampler:
    """Reads the whole board's power at `rate_hz` in a thread of its own. Any thread may call its methods.

    It reads at a random moment of each period: otherwise a load that repeats at the same rate, such as a model run
    again and again, would always be sampled in the same phase.

    board: name in the table of boards, None if unknown. total_of: names of the rails that are added up. reason: why
    power is not measured now, None if it is. dropped: rails that are not read.
    """

    def __init__(self, settings: PowerSettings, rails_every_s: float | None = None) -> None:
        """Start the thread, which first searches for the sensors.

        rails_every_s: interval at which `rails_w` is updated, for rails outside the total too; None: never.
        """
        self.board: str | None = None
        self.total_of: tuple[str, ...] = ()
        self.reason: str | None = "searching for power sensors"
        self.dropped: tuple[DroppedRail, ...] = ()
        self._settings = settings
        self._samples: deque[Sample] = deque(maxlen=math.ceil(KEPT_S * settings.rate_hz))
        self._lock = threading.Lock()  # guards the rails and the fields about them
        self._rails: FoundRails | None = None  # None: the total cannot be read
        self._last = _LastValues([], 0)
        self._failures = 0
        self._rails_every_s = rails_every_s
        self._rails_w: dict[str, float] = {}
        self._first_search_done = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    @property
    def stale_after_s(self) -> float:
        """Longest time between two samples, in s: over a longer gap, power counts as unknown."""
        return max(STALE_S, STALE_PERIODS / self._settings.rate_hz)

    def ready(self, limit_s: float) -> bool:
        """Wait until the first search for sensors is over; return False if limit_s passes first."""
        return self._first_search_done.wait(limit_s)

    def now(self) -> int:
        """Take a sample now; return its time, of time.monotonic_ns(). Without a sensor, return only the time."""
        with self._lock:
            return time.monotonic_ns() if self._rails is None else self._take_sample(self._rails)

    def between(self, begin_ns: int, end_ns: int) -> list[Sample]:
        """Return the samples between two times, both included, the oldest first; samples are kept for 2 minutes."""
        with self._lock:
            newest_first = itertools.takewhile(lambda sample: sample.time_ns >= begin_ns, reversed(self._samples))
            samples = [sample for sample in newest_first if sample.time_ns <= end_ns]
        samples.reverse()
        return samples

    def since(self, begin_ns: int) -> tuple[EnergySum, int]:
        """Return the energy from `begin_ns` to the newest sample, and the time of that sample in ns."""
        samples = self.between(begin_ns, time.monotonic_ns())
        return add_up(samples, self.stale_after_s), samples[-1].time_ns if samples else begin_ns

    def watts(self) -> float | None:
        """Return the mean power of the last second, None if unknown."""
        return None if self.reason is not None else self.since(time.monotonic_ns() - 1_000_000_000)[0].mean_w

    def rails_w(self) -> dict[str, float]:
        """Return each readable rail's last power in watts by name; empty without rails_every_s or sensors."""
        return self._rails_w if self.reason is None else {}

    def stop(self) -> None:
        """End the thread and close the sensors; samples stay available."""
        self._stopping.set()
        self._thread.join()
        with self._lock:
            if self._rails is not None:
                self._rails.close()
            self._rails = None

    def _run(self) -> None:
        """Find the sensors, then sample until `stop`; search again at times if they are lost."""
        rate_hz = self._settings.rate_hz
        self._find_rails()
        self._first_search_done.set()
        searched_s = began_s = time.monotonic()
        rails_s = -math.inf
        period = 0
        while not self._stopping.wait(max(0.0, began_s + (period + random.random()) / rate_hz - time.monotonic())):
            if self._rails is None and time.monotonic() - searched_s >= LOOK_AGAIN_S:
                self._find_rails()
                searched_s = time.monotonic()
            self.now()
            if self._rails_every_s is not None and time.monotonic() - rails_s >= self._rails_every_s:
                self._read_rails()
                rails_s = time.monotonic()
            period = max(period + 1, int((time.monotonic() - began_s) * rate_hz))  # missed readings are not repeated

    def _find_rails(self) -> None:
        """Search for the rails of the total; if there are none, record the reason."""
        rails = find_rails(self._settings)
        if not rails.total:
            rails.close()
        with self._lock:
            self.dropped = rails.dropped
            if not rails.total:
                self._record_loss(str(rails.reason))
                return
            self._rails, self._failures = rails, 0
            self.board = rails.board_name
            self.total_of = rails.total_of
            self.reason = None
        fields = event("power-found", rail=self.total_of, rate_hz=self._settings.rate_hz)
        log.info("power is read %g times a second: %s", self._settings.rate_hz, " + ".join(self.total_of), extra=fields)

    def _record_loss(self, reason: str) -> None:
        """Record that power is unknown; log it if power was known before, or at the first search."""
        if self._rails is not None or not self._first_search_done.is_set():
            log.warning("power is not measured: %s", reason, extra=event("power-lost"))
        self._rails, self.reason = None, reason

    def _take_sample(self, rails: FoundRails) -> int:
        """Read the total's rails, store a sample, and return the time of the newest sample in ns."""
        begin_ns = time.monotonic_ns()
        try:
            values = [rail.read_uw() if rail.read_uj is None else rail.read_uj() for rail in rails.total]
        except RailError as error:
            return self._record_failure(rails, begin_ns, str(error))
        time_ns = (begin_ns + time.monotonic_ns()) >> 1
        counts = [rail.read_uj is not None for rail in rails.total]
        power_w = sum(value for value, is_count in zip(values, counts, strict=True) if not is_count) * 1e-6
        counted_j = sum(value for value, is_count in zip(values, counts, strict=True) if is_count) * 1e-6
        is_new = values != self._last.by_rail or time_ns - self._last.since_ns >= SLOWEST_S * 1e9
        if is_new:
            self._last = _LastValues(values, time_ns)
        if not self._samples or time_ns > self._samples[-1].time_ns:
            self._samples.append(Sample(time_ns, power_w, counted_j, is_new))
        self._failures = 0
        return self._samples[-1].time_ns

    def _read_rails(self) -> None:
        rails_w = {}
        with self._lock:
            for rail in () if self._rails is None else self._rails.rails:
                with contextlib.suppress(RailError):  # unreadable rails are left out
                    rails_w[rail.name] = rail.read_uw() * 1e-6
        self._rails_w = rails_w

    def _record_failure(self, rails: FoundRails, time_ns: int, reason: str) -> int:
        """Store a sample with unknown power; after several in a row, close the rails, to search for them again."""
        self._failures += 1
        self._last = _LastValues([], 0)
        self._samples.append(Sample(time_ns, math.nan))
        if self._failures >= PATIENCE:
            rails.close()
            self._record_loss(reason)
        return time_ns
