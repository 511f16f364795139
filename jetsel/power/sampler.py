"""Reads the board's total power in a thread, at a steady rate, and keeps the samples of the last minutes."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import random
import threading
import time
from collections import deque

from jetsel.base.events import event
from jetsel.power.finding import FoundRails, PowerSettings, find
from jetsel.power.integration import Sample, Sum, add_up, stale_s
from jetsel.power.sensors.rail import RailError
from jetsel.wire.power import DroppedRail

log = logging.getLogger("jetsel.power")

KEPT_S = 120.0
SLOWEST_S = 1.0
"""A reading that repeats the one before is a new value of the sensor after so long. No longer does an INA3221 keep one:
860 ms for the mean of 1,024 conversions of 140 us of each of six (TI SBOS576); NVIDIA's setting gives 430 ms."""

PATIENCE = 3  # failures in a row before the rails are looked for again: a driver that was bound anew has other paths
LOOK_AGAIN_S = 10.0
READY_S = 60.0  # a board reads Python from a slow card


class Sampler:
    """Samples of the board's total. Any thread may call; at `rate_hz` a thread of its own reads.

    It reads at a random moment of each period: a load that repeats in step with the reading, such as a model that is
    run again and again, would be seen in the same of its phases each time.

    board: by the table of boards, None if it is in none. total_of: the names of the rails that make the total.
    reason: why no samples come, None while they do. dropped: what is not read.
    """

    def __init__(self, settings: PowerSettings, rails_every_s: float | None = None) -> None:
        """Start the thread, which looks for the sensors first.

        rails_every_s: how often each rail is read, too, those that are not of the total among them; None for never.
        """
        self.board: str | None = None
        self.total_of: tuple[str, ...] = ()
        self.reason: str | None = "searching for power sensors"
        self.dropped: tuple[DroppedRail, ...] = ()
        self._settings = settings
        self._samples: deque[Sample] = deque(maxlen=math.ceil(KEPT_S * settings.rate_hz))
        self._lock = threading.Lock()  # of the rails and what is noted of them
        self._found: FoundRails | None = None  # None: no total can be read
        self._last: list[int] = []  # what each rail of the total said, to see which values are new
        self._new_ns = 0
        self._failures = 0
        self._rails_every_s = rails_every_s
        self._rails_w: dict[str, float] = {}
        self._looked = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    @property
    def stale_after_s(self) -> float:
        """How far two samples may be apart for the power between them to be known."""
        return stale_s(self._settings.rate_hz)

    def ready(self, limit_s: float) -> bool:
        """Wait until the sensors were looked for, whether or not there are any; False at the limit."""
        return self._looked.wait(limit_s)

    def now(self) -> int:
        """Take a sample at once, if there is a sensor; return its time, of time.monotonic_ns()."""
        with self._lock:
            return time.monotonic_ns() if self._found is None else self._read(self._found)

    def between(self, begin_ns: int, end_ns: int) -> list[Sample]:
        """Return the samples from one time to another, both included, in their order; those of 2 minutes are kept."""
        with self._lock:
            newest_first = itertools.takewhile(lambda sample: sample.time_ns >= begin_ns, reversed(self._samples))
            samples = [sample for sample in newest_first if sample.time_ns <= end_ns]
        samples.reverse()
        return samples

    def since(self, begin_ns: int) -> tuple[Sum, int]:
        """Return what the samples add up to from one at or after `begin_ns` to the newest, and the newest's time."""
        samples = self.between(begin_ns, time.monotonic_ns())
        return add_up(samples, self.stale_after_s), samples[-1].time_ns if samples else begin_ns

    def watts(self) -> float | None:
        """Return the mean power of the last second, None if none was read."""
        return None if self.reason is not None else self.since(time.monotonic_ns() - 1_000_000_000)[0].mean_w

    def rails_w(self) -> dict[str, float]:
        """Return what each rail that can be read said last, in watts, by its name; empty if none is read."""
        return self._rails_w if self.reason is None else {}

    def stop(self) -> None:
        """End the thread and close the sensors. What was sampled can still be read."""
        self._stopping.set()
        self._thread.join()
        with self._lock:
            if self._found is not None:
                self._found.close()
            self._found = None

    def _run(self) -> None:
        rate_hz = self._settings.rate_hz
        self._look()
        self._looked.set()
        looked_s = began_s = time.monotonic()
        rails_s = -math.inf
        period = 0
        while not self._stopping.wait(max(0.0, began_s + (period + random.random()) / rate_hz - time.monotonic())):
            if self._found is None and time.monotonic() - looked_s >= LOOK_AGAIN_S:
                self._look()
                looked_s = time.monotonic()
            self.now()
            if self._rails_every_s is not None and time.monotonic() - rails_s >= self._rails_every_s:
                self._read_rails()
                rails_s = time.monotonic()
            period = max(period + 1, int((time.monotonic() - began_s) * rate_hz))  # what was missed is not made up

    def _look(self) -> None:
        """Look for the rails of the total; if there are none, say why."""
        rails = find(self._settings)
        if not rails.total:
            rails.close()
        with self._lock:
            self.dropped = rails.dropped
            if not rails.total:
                self._lost(str(rails.reason))
                return
            self._found, self._failures = rails, 0
            self.board = rails.board_name
            self.total_of = rails.total_of
            self.reason = None
        fields = event("power-found", rail=self.total_of, rate_hz=self._settings.rate_hz)
        log.info("power is read %g times a second: %s", self._settings.rate_hz, " + ".join(self.total_of), extra=fields)

    def _lost(self, reason: str) -> None:
        """Note that nothing is read any more, and log it if it was read before, or nobody looked."""
        if self._found is not None or not self._looked.is_set():
            log.warning("power is not measured: %s", reason, extra=event("power-lost"))
        self._found, self.reason = None, reason

    def _read(self, rails: FoundRails) -> int:
        begin_ns = time.monotonic_ns()
        try:
            values = [rail.read_uw() if rail.read_uj is None else rail.read_uj() for rail in rails.total]
        except RailError as error:
            return self._failed(rails, begin_ns, str(error))
        time_ns = (begin_ns + time.monotonic_ns()) >> 1
        counts = [rail.read_uj is not None for rail in rails.total]
        power_w = sum(value for value, is_count in zip(values, counts, strict=True) if not is_count) * 1e-6
        counted_j = sum(value for value, is_count in zip(values, counts, strict=True) if is_count) * 1e-6
        is_new = values != self._last or time_ns - self._new_ns >= SLOWEST_S * 1e9
        if is_new:
            self._last, self._new_ns = values, time_ns
        if not self._samples or time_ns > self._samples[-1].time_ns:
            self._samples.append(Sample(time_ns, power_w, counted_j, is_new))
        self._failures = 0
        return self._samples[-1].time_ns

    def _read_rails(self) -> None:
        found_w = {}
        with self._lock:
            for rail in () if self._found is None else self._found.rails:
                with contextlib.suppress(RailError):  # one that cannot be read now is not told
                    found_w[rail.name] = rail.read_uw() * 1e-6
        self._rails_w = found_w

    def _failed(self, rails: FoundRails, time_ns: int, reason: str) -> int:
        self._failures += 1
        self._last = []
        self._samples.append(Sample(time_ns, math.nan))
        if self._failures >= PATIENCE:
            rails.close()
            self._lost(reason)
        return time_ns
