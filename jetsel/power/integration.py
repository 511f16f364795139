"""Computes energy from samples: the trapezoid rule for power, differences for counters, minus idle power."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

FEWEST_VALUES = 10
"""Number of new sensor values that a window needs: fewer may not represent the power in it."""

STALE_S, STALE_PERIODS = 0.25, 3.0
"""Power is unknown between samples further apart than this, or than three sampling periods if longer."""

NO_METER = "no meter"
NO_READING = "the sensor could not be read during the window"


class WindowEnergy(NamedTuple):
    """Energy above idle power in a window, None and a reason if unknown. samples: number of new sensor values in it."""

    energy_mj: float | None
    reason: str | None
    samples: int = 0


class Sample(NamedTuple):
    """One reading of the whole board's power. time_ns: of time.monotonic_ns().

    power_w: sum of the rails that measure power, NaN if one could not be read. counted_j: sum of the rails that count
    energy instead, since they were opened. is_new: False if the sensor repeated its last value, as slow sensors do.
    """

    time_ns: int
    power_w: float
    counted_j: float = 0.0
    is_new: bool = True


class EnergySum(NamedTuple):
    """Energy in a window of length_s, idle power included. known_s: the time in it for which power is known."""

    energy_j: float = 0.0
    known_s: float = 0.0
    length_s: float = 0.0
    new_values: int = 0

    @property
    def mean_w(self) -> float | None:
        """Mean power over the known time, None if there is none."""
        return self.energy_j / self.known_s if self.known_s > 0 else None

    @property
    def is_whole(self) -> bool:
        """Whether power was known during the whole window."""
        return self.known_s >= self.length_s - 1e-9


def add_up(samples: Iterable[Sample], stale_after_s: float) -> EnergySum:
    """Return the energy from the first to the last sample: trapezoids for power, differences for counters.

    Gaps next to an unreadable sample, or longer than `stale_after_s`, do not count as energy or known time.
    """
    energy_j = known_s = length_s = 0.0
    new_values = 0
    for before, after in itertools.pairwise(samples):
        gap_s = (after.time_ns - before.time_ns) * 1e-9
        length_s += gap_s
        mean_w = (before.power_w + after.power_w) / 2
        if math.isnan(mean_w) or gap_s > stale_after_s:
            continue
        energy_j += mean_w * gap_s + after.counted_j - before.counted_j
        known_s += gap_s
        new_values += after.is_new
    return EnergySum(energy_j, known_s, length_s, new_values)


def energy_above_idle(samples: list[Sample], idle_w: float, stale_after_s: float) -> WindowEnergy:
    """Return the energy above idle power from the first to the last sample (Taylor et al., section 4.2).

    idle_w: idle power. stale_after_s: longest gap between samples. The energy is None, with a reason, if power was
    unknown for part of the time or the sensor had fewer than FEWEST_VALUES new values.
    """
    whole = add_up(samples, stale_after_s)
    if whole.length_s <= 0 or any(math.isnan(sample.power_w) for sample in samples):
        return WindowEnergy(None, NO_READING, whole.new_values)
    if not whole.is_whole:
        unknown_s = whole.length_s - whole.known_s
        return WindowEnergy(None, f"{unknown_s:.2g} s of the window were not sampled", whole.new_values)
    if whole.new_values < FEWEST_VALUES:
        return WindowEnergy(None, too_few_reason(whole.new_values, whole.length_s), whole.new_values)
    return WindowEnergy(1e3 * (whole.energy_j - idle_w * whole.length_s), None, whole.new_values)


def too_few_reason(count: int, length_s: float) -> str:
    """Return the message for a window of `length_s` in which the sensor had only `count` new values."""
    return f"the sensor had {count} new values in the window of {length_s:.3g} s, and {FEWEST_VALUES} are needed"
