"""Who used the energy: activities that overlap share the power above idle, and their shares add up to the total."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jetsel.power.integration import NO_READING, IdlePower, Measure, inside, measure, too_few
from jetsel.power.reading import Reading
from jetsel.power.samples import Samples
from jetsel.power.sharing import stretches
from jetsel.power.source import Source, around

MOST_PENDING = 10_000  # begins and ends that nobody settled, until an end does so itself
BEHIND_NS = 1_000_000_000  # how long totals wait for samples of a sensor that is silent
AT_ONCE_NS = 200_000  # from the end of one activity to the beginning of the next: the same request goes on


@dataclass(frozen=True)
class Total:
    """What the activities of one name took since the start, so far as samples tell.

    joules: above idle, None where no instant of them was metered. seconds: their own lengths added up, count: how many
    have ended, unmetered_s: for how much of `seconds` the power is not known, so that it is not in `joules`.
    """

    joules: float | None
    seconds: float
    count: int
    unmetered_s: float


class Activity:
    """Something that takes energy for a while, such as one run of a model; only the ledger writes it."""

    __slots__ = ("begin_ns", "changes", "end_ns", "energy_mj", "part", "share_s", "unmetered_s", "what")

    def __init__(self, what: str, begin_ns: int) -> None:
        self.what = what
        self.begin_ns = begin_ns
        self.end_ns: int | None = None  # None while it runs
        self.energy_mj = 0.0  # its share so far
        self.share_s = 0.0  # each second divided by how many ran in it
        self.unmetered_s = 0.0  # for how long of it the power is not known
        self.part = 0.0  # of the power, when it was last shared out: 1 over how many ran; 0 before
        self.changes = 0.0  # by how much its part of the power changed, added up: 1/2 when a second one joins the first


@dataclass
class _Window:
    """Activities of one request that follow one another at once, and their parts of it."""

    begin_ns: int
    end_ns: int
    shares: list[tuple[Activity, float]]


class _Sum:
    def __init__(self) -> None:
        self.joules, self.seconds, self.count, self.unmetered_s = 0.0, 0.0, 0, 0.0

    def total(self) -> Total:
        metered = self.seconds - self.unmetered_s > 1e-9
        return Total(self.joules if metered else None, self.seconds, self.count, self.unmetered_s)


class Ledger:
    """Shares the energy above idle among what runs. Thread-safe; begin and end take microseconds.

    At each instant the activities that run share the power above idle equally. Time is worked off once, in order, by
    whoever settles or asks for the totals, and what an activity got then stays; so the shares add up to the total.
    Nothing is kept of what has been worked off but one sum for each name. While something runs the sampler is open.
    """

    def __init__(
        self, sampler: Source, idle: IdlePower | None, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """idle: None while it is not known; may be set later. clock_ns: the clock that dates the samples."""
        self.idle = idle
        self._sampler = sampler
        self._clock_ns = clock_ns
        self._marking = threading.Lock()  # orders events by their time; held for moments
        self._events: deque[tuple[int, Activity]] = deque()  # an activity stands twice: begun, ended
        self._running = 0
        self._working = threading.Lock()  # over all below; held for a settlement
        self._active: dict[Activity, None] = {}
        self._until_ns = 0  # up to when time was worked off
        self._sums: dict[str, _Sum] = {}

    def begin(self, what: str) -> Activity:
        """Note that something begins now; `what`: under which name its energy is added up."""
        with self._marking:
            if self._running == 0:
                self._sampler.open()
            self._running += 1
            activity = Activity(what, self._clock_ns())
            self._events.append((activity.begin_ns, activity))
        return activity

    def end(self, activity: Activity) -> None:
        """Note that it has ended. Each activity is ended once."""
        with self._marking:
            activity.end_ns = self._clock_ns()
            self._events.append((activity.end_ns, activity))
            self._running -= 1
            if self._running == 0:
                self._sampler.shut()
        if len(self._events) > MOST_PENDING:
            self.totals()

    def settle(self, shares: Sequence[tuple[Activity, float]]) -> Reading:
        """Return the energy of activities that have ended, each times its weight: a batch of n counts 1/n for each.

        What the samples do not show yet is taken to be as the last one, and stays so. None with a reason below two
        samples inside of all of them together, and where `integrate` has a reason for one of them. Shares go into the
        totals either way; those of what is too short to be read are settled with the next that is not, or by `totals`.
        """
        if not shares:
            return Reading(None, "nothing ran")
        first_ns = min(activity.begin_ns for activity, _ in shares)
        last_ns = max(_ended_ns(activity) for activity, _ in shares)
        with self._working:
            samples = around(self._sampler, min(first_ns, self._from_ns(last_ns)), last_ns)
            windows = _touching(shares)
            seen = sum(inside(samples, window.begin_ns, window.end_ns) for window in windows)
            if seen < 2 and self.idle is not None:  # somebody waits for the answer: its share is settled later
                length_ns = sum(window.end_ns - window.begin_ns for window in windows)
                return Reading(None, too_few(seen, length_ns, samples.bound_s), seen)
            self._work_off(last_ns, samples)
            return self._read(windows, samples)

    def totals(self) -> dict[str, Total]:
        """Return what each name took, up to the newest sample."""
        with self._working:
            now_ns = self._clock_ns()
            newest = self._sampler.latest()
            until_ns = max(newest[0] if newest else 0, now_ns - BEHIND_NS)
            self._work_off(until_ns, self._sampler.samples(self._from_ns(until_ns), until_ns))
            return {what: found.total() for what, found in self._sums.items()}

    def _from_ns(self, until_ns: int) -> int:
        """Return from when on there is something to work off: nothing before the next begin where nothing runs."""
        if self._active:
            return min(self._until_ns, until_ns)
        with self._marking:
            return min(self._events[0][0], until_ns) if self._events else until_ns

    def _work_off(self, until_ns: int, samples: Samples) -> None:
        until_ns = max(until_ns, self._until_ns)
        begin_ns = self._from_ns(until_ns)
        due = []
        with self._marking:
            while self._events and self._events[0][0] <= until_ns:
                due.append(self._events.popleft())
        self._until_ns = until_ns
        instants_ns = [begin_ns, *(at_ns for at_ns, _ in due), until_ns]
        found = stretches(samples, instants_ns, self.idle)
        for stretch, length_ns, event in zip(found, np.diff(instants_ns).tolist(), [*due, None], strict=True):
            self._share(stretch.energy_mj, length_ns * 1e-9, stretch.unmetered_s)
            if event is not None:
                self._switch(event[1])

    def _share(self, energy_mj: float, length_s: float, unmetered_s: float) -> None:
        """Give each that runs its part of a stretch of time."""
        if not self._active or length_s == 0:
            return
        part = 1 / len(self._active)
        for activity in self._active:
            activity.energy_mj += energy_mj * part
            activity.share_s += length_s * part
            activity.changes += abs(part - (activity.part or part))
            activity.part = part
            activity.unmetered_s += unmetered_s
            total = self._sums[activity.what]
            total.joules += energy_mj * part * 1e-3
            total.seconds += length_s
            total.unmetered_s += unmetered_s

    def _switch(self, activity: Activity) -> None:
        """Let an activity that runs end, and another begin."""
        total = self._sums.setdefault(activity.what, _Sum())
        if activity in self._active:
            del self._active[activity]
            total.count += 1
        else:
            self._active[activity] = None

    def _read(self, windows: Sequence[_Window], samples: Samples) -> Reading:
        energy_mj, half_width_mj, seen = 0.0, 0.0, 0
        for window in windows:
            whole = measure(samples, window.begin_ns, window.end_ns, self.idle)
            if isinstance(whole, str):
                return Reading(None, whole)
            if any(activity.unmetered_s > 1e-9 for activity, _ in window.shares):  # samples that came too late for it
                return Reading(None, NO_READING, whole.samples)
            energy_mj += sum(weight * activity.energy_mj for activity, weight in window.shares)
            half_width_mj += _half_width_mj(window, whole, samples)
            seen += whole.samples
        return Reading(energy_mj, None, seen, half_width_mj)


def _ended_ns(activity: Activity) -> int:
    if activity.end_ns is None:
        raise ValueError(f"{activity.what} still runs: end it before it is settled")
    return activity.end_ns


def _touching(shares: Sequence[tuple[Activity, float]]) -> list[_Window]:
    """Return activities that follow one another at once as one: what is unknown of a window is mostly so at its edges.

    It also takes one look at the samples in place of one for each, while somebody waits for the answer.
    """
    found: list[_Window] = []
    for share in sorted(shares, key=lambda share: share[0].begin_ns):
        begin_ns, end_ns = share[0].begin_ns, _ended_ns(share[0])
        if end_ns == begin_ns:
            continue
        if found and begin_ns - found[-1].end_ns <= AT_ONCE_NS:
            found[-1].shares.append(share)
            found[-1].end_ns = max(found[-1].end_ns, end_ns)
        else:
            found.append(_Window(begin_ns, end_ns, [share]))
    return found


def _half_width_mj(window: _Window, whole: Measure, samples: Samples) -> float:
    """Return half of the 95 % interval of shares: the whole's, in proportion, and that of where they were cut.

    Whenever another joined or left, power that was seen up to a period away may have gone to the wrong side: the range
    of the power during the activity, for a period, times the part that changed hands.
    """
    lasted_s = (window.end_ns - window.begin_ns) * 1e-9
    part = sum(weight * activity.share_s for activity, weight in window.shares) / lasted_s
    changes = sum(weight * activity.changes for activity, weight in window.shares)
    if not changes:
        return whole.half_width_mj * part
    low, high = np.searchsorted(samples.times_ns, (window.begin_ns, window.end_ns))
    around_w = samples.power_w[max(int(low) - 1, 0) : int(high) + 1]
    range_w = float(np.fmax.reduce(around_w) - np.fmin.reduce(around_w))
    return whole.half_width_mj * part + 1e3 * changes * range_w * samples.age_s
