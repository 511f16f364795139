"""How often a sensor has a new value, found out from when its values change.

A driver that does not wait for its chip repeats a value until the chip has the next one, and a chip may keep a value
for 0.3 ms or for 7 s (INA3221 data sheet, TI SBOS576: 140 us to 8.244 ms for each of two to six conversions, times 1 to
1,024 for the mean of as many). Its clock shows in the instants at which values change: whole periods lie between them,
however many updates brought the value that was there before.

Three things must not be taken for that clock. Constant power: nothing changes, so nothing is learnt. A load that is
switched on and off by a clock: it changes between few values, so a period is believed only where many values were seen,
or many different numbers of periods between changes. And voltage and current that a chip writes one after the other,
as two changes of one power: so changes may fall on two phases of the period.
"""

from __future__ import annotations

import cmath
import math
from collections import Counter, deque
from collections.abc import Iterator
from itertools import pairwise

MEMORY = 48  # changes that are looked at
FEWEST = 6  # changes that anything is concluded from
LONGEST = 5000  # reads that the changes looked at may be spread over, which bounds the work of a search
EVIDENCE = 14.0  # how improbable it is that changes at any time fall on the phases: minus the logarithm; e**8 are tried
SHARE = 0.9  # of the changes that must fall on the phases; the rest are hiccups of driver and clock
VARIETY = 5  # different values that stood for a period, which what is passed through on the way does not; or
MULTIPLES = 3  # different numbers of periods between changes, each seen twice
ENOUGH = 12  # changes from which on the variety of values says something
SLOWEST_NS = 1_000_000_000
"""Taken for the period while nothing is known: above 860 ms, an INA3221 that takes the mean of 1,024 conversions of
140 us of each of six (NVIDIA's setting is 512 of them: 430 ms)."""
PHASES = 2  # a rail's voltage and current, which a chip may write at different times
CONVERSIONS = 6  # in a cycle of an INA3221: what it writes next to each other is a sixth of its period apart at least
STRONG = 0.5  # the Rayleigh statistic of a period worth a closer look; two equal phases 1/3 of a period apart have it
STEPS_A_LOOK = 8  # frequencies tried at a time, so that no sample is late for it: about 0.1 ms

SINGLE_NS = 50_000_000
"""An INA3221 that does not average has a value every 49.5 ms at the slowest, after six conversions of 8.244 ms."""


def averaging_ns(period_ns: int) -> int:
    """Return what a value of a sensor that updates every `period_ns` is the mean of, as far as that can be told.

    Above SINGLE_NS, the whole period. Below it that is not known: a chip that averages over all of it and one that
    converts once, a sixth of it, look the same; the value then counts as of when it appeared.
    """
    return period_ns if period_ns > SINGLE_NS else 0


class Cadence:
    """What is known of one rail's update period. `think` is called now and then, and does a little each time."""

    def __init__(self) -> None:
        self.period_ns: int | None = None  # None: not known, or no longer than the time between two reads
        self._ceiling_ns = SLOWEST_NS
        self._changes: deque[tuple[int, int, int]] = deque(maxlen=MEMORY)  # after one read, before the next; the value
        self._last_ns = 0  # the read that saw the last change, kept or not
        self._new = 0  # changes since the last search
        self._search: Iterator[None] | None = None

    def changed(self, before_ns: int, now_ns: int, value: int) -> None:
        """Take note that the read at `now_ns` gave another value than the read at `before_ns`."""
        repeated = before_ns != self._last_ns
        self._last_ns = now_ns
        changes = self._changes
        if changes and now_ns - before_ns > 2 * (changes[-1][1] - changes[-1][0]) and not repeated:
            return  # far apart, and each new: says nothing that is not known from closer ones
        changes.append((before_ns, now_ns, value))
        self._new += 1

    def bound_ns(self) -> int:
        """Return what the period cannot be longer than, while it is not known; SLOWEST_NS before enough has changed.

        Of n changes of one rail at least n / PHASES, rounded up, are of the same register, and whole periods lie
        between those: so n changes within a time prove how long a period is at most. However, a load that is constant
        for long changes little, on a fast sensor too. So where the same few values come again and again, the time
        between neighbouring changes counts: a chip writes nothing closer together than its conversions.
        """
        changes = list(self._changes)
        for count in (3, 5, 9, 17, 33):
            cycles = -(-count // PHASES) - 1
            for first, last in zip(changes, changes[count - 1 :], strict=False):
                self._ceiling_ns = min(self._ceiling_ns, (last[1] - first[0]) // cycles)
        if len(changes) >= ENOUGH:
            between_ns = sorted(other[1] - one[1] for one, other in pairwise(changes))
            stand_ns = between_ns[len(between_ns) // 4]
            if len(_standing(changes, stand_ns)) < VARIETY:
                return min(CONVERSIONS * stand_ns, self._ceiling_ns)
        return self._ceiling_ns

    @property
    def is_searching(self) -> bool:
        """Whether `think` has something to do."""
        return self._search is not None

    def search(self) -> None:
        """Begin to look for the period again, where enough has changed since the last time."""
        if self._new >= FEWEST and self._search is None:
            self._new = 0
            self._search = self._searching()

    def think(self) -> None:
        """Go on with a search for a tenth of a millisecond or so."""
        if self._search is not None and next(self._search, self) is self:
            self._search = None

    def _searching(self) -> Iterator[None]:
        changes = _alike(list(self._changes))
        if len(changes) < FEWEST:
            return
        gap_ns = max(after - before for before, after, _ in changes)
        alone = sum(one[1] == other[0] for one, other in pairwise(changes))
        if alone > SHARE * (len(changes) - 1):  # every read had a new value
            if self.period_ns is not None and self.period_ns > 2 * gap_ns:
                self.period_ns = None
            return
        yield
        for frequency, strength in _peaks(changes, gap_ns):
            if strength is None:
                yield
            elif (found_ns := _confirmed(changes, 1 / frequency, gap_ns)) is not None:
                if _is_varied(changes, found_ns):  # else its parts are no better founded
                    self.period_ns = found_ns
                return
            else:
                yield


def _alike(changes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the newest of the changes that were seen by reads about as close together as the closest."""
    if not changes:
        return []
    close_ns = 3 * min(after - before for before, after, _ in changes)
    close = [change for change in changes if change[1] - change[0] <= close_ns]
    chosen = close if len(close) >= FEWEST else changes
    since_ns = chosen[-1][1] - LONGEST * max(after - before for before, after, _ in chosen)
    return [change for change in chosen if change[0] >= since_ns]


def _peaks(changes: list[tuple[int, int, int]], gap_ns: int) -> Iterator[tuple[float, float | None]]:
    """Yield the frequencies (per ns) at which the changes gather, from the longest period down.

    That is the periodogram of the instants: the length of the mean of their phases as unit vectors (Rayleigh), 1 where
    all have the same phase. Between two peaks it yields (0, None) every STEPS_A_LOOK steps.
    """
    origin = changes[0][0]
    turns = [2j * math.pi * ((before + after) / 2 - origin) for before, after, _ in changes]
    span_ns = changes[-1][1] - origin
    step = 1 / (6 * span_ns)  # a peak is 1/span wide
    end = 1 / (1.5 * gap_ns)
    two_before = before = 0.0
    for number in range(6, int(end / step) + 2):  # from as long as all of it
        if number % STEPS_A_LOOK == 0:
            yield 0.0, None
        now = abs(sum(cmath.exp(number * step * turn) for turn in turns)) / len(turns)
        if before > STRONG and before >= now and before > two_before:
            yield (number - 1) * step, before
        two_before, before = before, now


def _confirmed(changes: list[tuple[int, int, int]], period_ns: float, gap_ns: int) -> int | None:
    """Return the period, made exact, where the changes fall on one or two phases of it as closely as they were seen."""
    found = _fitted(changes, period_ns)
    left = [(before % found, (after - before) / found, value) for before, after, value in changes]
    total = len(left)
    for phases in (1, 2) if found >= 3 * gap_ns else (1,):
        centre = max((begin + width * found for begin, width, _ in left), key=lambda at: _covered(left, at, found))
        left = [one for one in left if not _covers(one, centre, found)]
        if len(left) <= (1 - SHARE) * total:
            chance = min(phases * gap_ns / found, 1.0)
            free = total - len(left) - phases - 1  # the period and its phases were chosen to fit as many
            return round(found) if -free * math.log(chance) >= EVIDENCE else None
    return None


def _fitted(changes: list[tuple[int, int, int]], period_ns: float) -> float:
    """Return the period near `period_ns` at which the changes gather most."""
    origin = changes[0][0]
    turns = [2j * math.pi * ((before + after) / 2 - origin) for before, after, _ in changes]
    reach = 1 / (6 * (changes[-1][1] - origin))
    near = [1 / period_ns + reach * part / 8 for part in range(-8, 9)]
    return 1 / max(near, key=lambda frequency: abs(sum(cmath.exp(frequency * turn) for turn in turns)))


def _covers(one: tuple[float, float, int], centre: float, period_ns: float) -> bool:
    begin, width, _ = one
    return (centre - begin) / period_ns % 1.0 <= width + 1e-9


def _covered(left: list[tuple[float, float, int]], centre: float, period_ns: float) -> int:
    return sum(_covers(one, centre, period_ns) for one in left)


def _standing(changes: list[tuple[int, int, int]], period_ns: float) -> set[int]:
    """Return the values that stood for more than half of a period."""
    return {one[2] for one, other in pairwise(changes) if other[1] - one[1] > period_ns / 2}


def _is_varied(changes: list[tuple[int, int, int]], period_ns: int) -> bool:
    between = [other[1] - one[1] for one, other in pairwise(changes)]
    values = _standing(changes, period_ns)
    multiples = Counter(round(passed / period_ns) for passed in between)
    return len(values) >= VARIETY or sum(seen >= 2 for many, seen in multiples.items() if many) >= MULTIPLES
