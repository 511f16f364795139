"""Reads the board's total power in a thread, at a steady rate, and keeps the samples of the last minutes."""

from __future__ import annotations

import itertools
import logging
import math
import random
import threading
import time
from collections import deque

from jetsel.events import event
from jetsel.power.finding import Found, find
from jetsel.power.integration import Sample, Sum, add_up, stale_s
from jetsel.power.sensors.rail import Dropped, RailError
from jetsel.power.settings import Settings

log = logging.getLogger("jetsel.power")

KEPT_S = 120.0
SLOWEST_S = 1.0
"""A reading that repeats the one before is a new value of the sensor after so long. No longer does an INA3221 keep one:
860 ms for the mean of 1,024 conversions of 140 us of each of six (TI SBOS576); NVIDIA's setting gives 430 ms."""

PATIENCE = 3  # failures in a row before the rails are looked for again: a driver that was bound anew has other paths
LOOK_AGAIN_S, LONGEST_PAUSE_S = 1.0, 30.0
QUIET_S = 10.0  # between two lines that the sensors are gone, or back
RATE_OVER_S = 10.0


class Sampler:
    """Samples of the board's total. Any thread may call; at `rate_hz` a thread of its own reads.

    It reads at a random moment of each period: a load that repeats in step with the reading, such as a model that is
    run again and again, would be seen in the same of its phases each time.

    board: by the table of boards, None where it is in none. total_of: the names of the rails that make the total.
    reason: why no samples come, None while they do. dropped: what is not read.
    """

    def __init__(self, settings: Settings) -> None:
        """Start the thread, which looks for the sensors first."""
        self.board: str | None = None
        self.total_of: tuple[str, ...] = ()
        self.reason: str | None = "the sensors are being looked for"
        self.dropped: tuple[Dropped, ...] = ()
        self._settings = settings
        self._samples: deque[Sample] = deque(maxlen=math.ceil(KEPT_S * settings.rate_hz))
        self._lock = threading.Lock()  # of the rails and what is noted of them
        self._found: Found | None = None
        self._last: list[int] = []  # what each rail of the total said, to see which values are new
        self._new_ns = 0
        self._failures = 0
        self._said: tuple[str | None, float] = (None, -math.inf)  # the reason that was logged last, and when
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
        """Take a sample at once, where there is a sensor; return its time, of time.monotonic_ns()."""
        with self._lock:
            if self._found is None or not self._found.total:
                return time.monotonic_ns()
            return self._read(self._found)

    def between(self, begin_ns: int, end_ns: int) -> list[Sample]:
        """Return the samples from one time to another, both included, in their order; those of 2 minutes are kept."""
        with self._lock:
            newest_first = itertools.takewhile(lambda sample: sample.time_ns >= begin_ns, reversed(self._samples))
            found = [sample for sample in newest_first if sample.time_ns <= end_ns]
        found.reverse()
        return found

    def since(self, begin_ns: int) -> tuple[Sum, int]:
        """Return what the samples add up to from one at or after `begin_ns` to the newest, and the newest's time."""
        samples = self.between(begin_ns, time.monotonic_ns())
        return add_up(samples, self.stale_after_s), samples[-1].time_ns if samples else begin_ns

    def watts(self) -> float | None:
        """Return the mean power of the last second, None where none was read."""
        return None if self.reason is not None else self.since(time.monotonic_ns() - 1_000_000_000)[0].mean_w

    def achieved_hz(self) -> float | None:
        """Return how many samples a second were taken lately, None before there are two."""
        now_ns = time.monotonic_ns()
        samples = self.between(now_ns - round(RATE_OVER_S * 1e9), now_ns)
        passed_ns = samples[-1].time_ns - samples[0].time_ns if samples else 0
        return (len(samples) - 1) * 1e9 / passed_ns if passed_ns else None

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
        if self.reason is None:
            told = event("sampler-started", rail=self.total_of, rate_hz=rate_hz)
            log.info("power is read %g times a second: %s", rate_hz, " + ".join(self.total_of), extra=told)
        began_s, period = time.monotonic(), 0
        while not self._stopping.wait(max(0.0, began_s + (period + random.random()) / rate_hz - time.monotonic())):
            self._tell()
            if self._found is None or self._failures >= PATIENCE:
                pause_s = min(LOOK_AGAIN_S * 2.0 ** max(self._failures - PATIENCE, 0), LONGEST_PAUSE_S)
                if not self._stopping.wait(pause_s):
                    self._look()
            self.now()
            period = max(period + 1, int((time.monotonic() - began_s) * rate_hz))  # what was missed is not made up

    def _look(self) -> None:
        """Look for the rails of the total; where there are none, say why. After a failure a reading must show them."""
        found = find(self._settings)
        with self._lock:
            before, self._found = self._found, found if found.total else None
            if before is not None:
                before.close()
            self.dropped = found.dropped
            if not found.total:
                found.close()
                self._failures = max(self._failures, PATIENCE - 1) + 1
                self.reason = found.reason
            else:
                self.board = None if found.board is None else found.board.name
                self.total_of = found.total_of
                self.reason = self.reason if self._failures else None

    def _read(self, found: Found) -> int:
        """Read the rails once and keep the sample."""
        begin_ns = time.monotonic_ns()
        try:
            values = [rail.read_uw() if rail.read_uj is None else rail.read_uj() for rail in found.total]
        except RailError as error:
            return self._failed(begin_ns, str(error))
        time_ns = (begin_ns + time.monotonic_ns()) >> 1
        counts = [rail.read_uj is not None for rail in found.total]
        power_w = sum(value for value, is_count in zip(values, counts, strict=True) if not is_count) * 1e-6
        counted_j = sum(value for value, is_count in zip(values, counts, strict=True) if is_count) * 1e-6
        is_new = values != self._last or time_ns - self._new_ns >= SLOWEST_S * 1e9
        if is_new:
            self._last, self._new_ns = values, time_ns
        if not self._samples or time_ns > self._samples[-1].time_ns:
            self._samples.append(Sample(time_ns, power_w, counted_j, is_new))
        self._failures = 0
        self.reason = None
        return self._samples[-1].time_ns

    def _failed(self, time_ns: int, reason: str) -> int:
        self._failures += 1
        self._last = []
        self._samples.append(Sample(time_ns, math.nan))
        if self._failures >= PATIENCE:
            self.reason = reason
        return time_ns

    def _tell(self) -> None:
        """Log that power is measured no more, or again: at most once in QUIET_S, and what holds in the end."""
        said, said_s = self._said
        now_s = time.monotonic()
        if self.reason == said or now_s - said_s < QUIET_S:
            return
        self._said = self.reason, now_s
        if self.reason is not None:
            log.warning("power is not measured: %s", self.reason, extra=event("power-lost"))
        else:
            rails = " + ".join(self.total_of)
            log.warning("power is measured again: %s", rails, extra=event("power-found", rail=self.total_of))
