"""A power whose energy is known exactly, and what a sampler sees of it through an INA3221: worked out, not waited for.

Chip: TI, INA3221 data sheet (SBOS576): shunt and bus voltage of each enabled channel are converted one after the other,
140 us to 8.244 ms each; one step is 40 uV over the shunt and 8 mV of the bus. Sampler: it polls on a fixed schedule,
wakes up a little late, and keeps what is new.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.power.samples import Samples
from jetsel.power.sampling.cadence import averaging_ns

IDLE_W, BUSY_W = 3.0, 8.0
BUS_V, SHUNT_OHM = 19.0, 0.005  # VDD_IN of a TX2
SHUNT_STEP_V, BUS_STEP_V = 40e-6, 8e-3
RESOLUTION_W = SHUNT_STEP_V / SHUNT_OHM * BUS_V
SLOW = 0.1  # of a conversion's nominal time, which it may take longer (data sheet: 1.1 ms typical, 1.21 at most)
WAKE_S = 50e-6  # mean lateness of a poll
STALLS, STALL_S = 1e-3, 4e-3  # share of the polls that come later than the schedule, and the latest of them


class Deducted(NamedTuple):
    """Idle power as a meter deducts it; half_width_w: half of its 95 % interval."""

    mean_w: float
    half_width_w: float


@dataclass(frozen=True, eq=False)
class Signal:
    """Power in steps: `watts[i]` from `times_s[i]` to `times_s[i + 1]`; times (n + 1,), watts (n,)."""

    name: str
    times_s: NDArray[np.float64]
    watts: NDArray[np.float64]
    _energy_j: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        steps_j = np.diff(self.times_s) * self.watts
        object.__setattr__(self, "_energy_j", np.concatenate([[0.0], np.cumsum(steps_j)]))

    @property
    def length_s(self) -> float:
        """Until when it is known."""
        return float(self.times_s[-1])

    def energy_j(self, at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the exact energy from the beginning to each time."""
        return np.interp(at_s, self.times_s, self._energy_j)


def constant(watts: float, length_s: float) -> Signal:
    """Return the same power all the time."""
    return Signal(f"constant {watts:g} W", np.array([0.0, length_s]), np.array([watts]))


def square(period_s: float, length_s: float) -> Signal:
    """Return idle and busy power in turn, each for half of the period."""
    times_s = np.arange(0, length_s + period_s, period_s / 2)
    watts = np.where(np.arange(len(times_s) - 1) % 2, BUSY_W, IDLE_W)
    return Signal(f"square {period_s * 1e3:g} ms", times_s, watts)


@dataclass(frozen=True)
class Chip:
    """An INA3221 in continuous mode. averages: conversions of each voltage whose mean is the value."""

    conversion_s: float = 140e-6
    channels: int = 3
    averages: int = 1

    @property
    def cycle_s(self) -> float:
        """How often each channel has a new value."""
        return 2 * self.channels * self.conversion_s * self.averages


def sampled(signal: Signal, chip: Chip, rate_hz: float, draw: np.random.Generator) -> Samples:
    """Return what a sampler keeps of a signal; the chip's phase and pace, and when polls come, are drawn."""
    pace = 1 + draw.uniform(0, SLOW)
    cycle_s, conversion_s = chip.cycle_s * pace, chip.conversion_s * pace
    phase_s = draw.uniform(0, cycle_s)
    polls_s = np.arange(2 * cycle_s, signal.length_s - 2 * cycle_s, 1 / rate_hz) + draw.uniform(0, 1 / rate_hz)
    polls_s = polls_s + draw.exponential(WAKE_S, len(polls_s))
    polls_s = polls_s + draw.uniform(0, STALL_S, len(polls_s)) * (draw.random(len(polls_s)) < STALLS)
    polls_s = np.sort(polls_s)
    cycle = np.floor((polls_s - phase_s) / cycle_s)  # the newest whole conversion of the shunt's ended with this cycle
    new = np.diff(cycle, prepend=-1) > 0
    ends_s = phase_s + cycle[new] * cycle_s
    conversions_s = ends_s[:, None] - np.arange(chip.averages) * cycle_s / chip.averages  # when each of them ended
    means_w = (signal.energy_j(conversions_s) - signal.energy_j(conversions_s - conversion_s)) / conversion_s
    mean_w = means_w.mean(axis=1)
    dated_s = polls_s[new] - averaging_ns(round(cycle_s * 1e9)) / 2e9
    period_s = max(cycle_s, 1 / rate_hz)
    return Samples((dated_s * 1e9).astype(np.int64), quantised(mean_w), RESOLUTION_W, period_s)


def quantised(power_w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a driver makes of the chip's registers: whole milliwatts, from whole steps of both voltages."""
    amps = np.rint(power_w / BUS_V * SHUNT_OHM / SHUNT_STEP_V) * SHUNT_STEP_V / SHUNT_OHM
    return np.floor(amps * np.rint(BUS_V / BUS_STEP_V) * BUS_STEP_V * 1e3) / 1e3
