"""What the registers of a power monitor hold at which time: means over conversion windows, quantised, once a cycle.

Source: TI, INA3221 data sheet (SBOS576): continuous mode converts shunt and bus voltage of channel 1, then 2, then 3,
and begins again; with averaging on, a result is written after that many rounds. Times and sample counts by the bits of
the configuration register (address 0, power-on value 0x7127): 140 us to 8.244 ms, 1 to 1,024. One step of a result is
8 mV (bus) or 40 uV (shunt), 13 bits with sign. INA238 data sheet (SBOSA20): shunt, bus and temperature in turn; 5 uV,
3.125 mV; times and counts by its ADC_CONFIG register (0xFB6A as Linux writes it: 1,052 us, 16 samples).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

TIMES_NS = tuple(1000 * us for us in (140, 204, 332, 588, 1100, 2116, 4156, 8244))
AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
INA238_TIMES_NS = tuple(1000 * us for us in (50, 84, 150, 280, 540, 1052, 2074, 4120))

Energy = Callable[[int], float]
"""Joules from some origin to an instant (CLOCK_MONOTONIC in ns): the integral of a power."""


@dataclass(frozen=True)
class Slot:
    """One conversion in each round of a chip: when it begins and how long the converter integrates."""

    offset_ns: int
    length_ns: int


@dataclass(frozen=True)
class Steps:
    """What one step of a chip's results stands for, and the largest result."""

    bus_v: float
    shunt_v: float
    most: int


@dataclass(frozen=True)
class Schedule:
    """A round of conversions, repeated; every `averages` rounds each result is written anew."""

    round_ns: int
    averages: int

    @property
    def cycle_ns(self) -> int:
        return self.round_ns * self.averages

    def latest(self, slot: Slot, since_ns: int) -> int:
        """Return which cycle's result a register holds, `since_ns` after the chip began: -1 is one before that."""
        written = (self.averages - 1) * self.round_ns + slot.offset_ns + slot.length_ns
        return (since_ns - written) // self.cycle_ns

    def mean_w(self, slot: Slot, cycle: int, begin_ns: int, energy_j: Energy) -> float:
        """Return the mean power over the windows of one cycle, of a chip that began at `begin_ns`."""
        first = begin_ns + cycle * self.cycle_ns + slot.offset_ns
        opens = range(first, first + self.cycle_ns, self.round_ns)
        energy = sum(energy_j(at + slot.length_ns) - energy_j(at) for at in opens)
        return energy / (self.averages * slot.length_ns * 1e-9)


@dataclass(frozen=True)
class Ina3221:
    """An INA3221 by its configuration register: channels, averages, conversion times, continuous mode."""

    config: int = 0x7127

    steps = Steps(bus_v=8e-3, shunt_v=40e-6, most=4095)

    @property
    def channels(self) -> tuple[int, ...]:
        """Return those that are enabled, from 0: bits 14 to 12."""
        return tuple(channel for channel in range(3) if self.config >> (14 - channel) & 1)

    @property
    def schedule(self) -> Schedule:
        pair_ns = self._shunt_ns + self._bus_ns
        return Schedule(len(self.channels) * pair_ns, AVERAGES[self.config >> 9 & 7])

    def slots(self, channel: int) -> tuple[Slot, Slot]:
        """Return the conversions of the shunt and of the bus voltage of a channel that is enabled."""
        begin = self.channels.index(channel) * (self._shunt_ns + self._bus_ns)
        return Slot(begin, self._shunt_ns), Slot(begin + self._shunt_ns, self._bus_ns)

    @property
    def _shunt_ns(self) -> int:
        return TIMES_NS[self.config >> 3 & 7]

    @property
    def _bus_ns(self) -> int:
        return TIMES_NS[self.config >> 6 & 7]


@dataclass(frozen=True)
class Ina238:
    """An INA238 by its ADC_CONFIG register, in the mode that converts temperature, shunt and bus voltage in turn."""

    adc_config: int = 0xFB6A

    steps = Steps(bus_v=3.125e-3, shunt_v=5e-6, most=32767)

    @property
    def schedule(self) -> Schedule:
        return Schedule(sum(self._times_ns), AVERAGES[self.adc_config & 7])

    def slots(self) -> tuple[Slot, Slot]:
        """Return the conversions of the shunt and of the bus voltage."""
        bus_ns, shunt_ns, _ = self._times_ns
        return Slot(0, shunt_ns), Slot(shunt_ns, bus_ns)

    @property
    def _times_ns(self) -> tuple[int, int, int]:
        bus, shunt, temperature = (INA238_TIMES_NS[self.adc_config >> bit & 7] for bit in (9, 6, 3))
        return bus, shunt, temperature


@dataclass(frozen=True)
class Supply:
    """What a channel measures: its voltage falls by `sag_ohm` times its current, as if that were at `nominal_v`."""

    energy_j: Energy
    nominal_v: float
    sag_ohm: float
    shunt_ohm: float

    def volts(self, mean_w: float) -> float:
        return self.nominal_v - self.sag_ohm * mean_w / self.nominal_v

    def shunt_volts(self, mean_w: float) -> float:
        return mean_w / self.volts(mean_w) * self.shunt_ohm


class Channel:
    """One channel of a chip that began to convert at `begin_ns`: its two results, each worked out once a cycle."""

    def __init__(self, supply: Supply, begin_ns: int, schedule: Schedule, shunt: Slot, bus: Slot, steps: Steps) -> None:
        self.shunt_ohm = supply.shunt_ohm
        self._supply = supply
        self._begin_ns = begin_ns
        self._schedule = schedule
        self._shunt = _Result(shunt, lambda mean_w: supply.shunt_volts(mean_w) / steps.shunt_v)
        self._bus = _Result(bus, lambda mean_w: supply.volts(mean_w) / steps.bus_v)
        self._most = steps.most

    def shunt_code(self, now_ns: int) -> int:
        """Return the shunt voltage's register at a time, in steps."""
        return self._code(self._shunt, now_ns)

    def bus_code(self, now_ns: int) -> int:
        """Return the bus voltage's register at a time, in steps."""
        return self._code(self._bus, now_ns)

    def _code(self, result: _Result, now_ns: int) -> int:
        cycle = self._schedule.latest(result.slot, now_ns - self._begin_ns)
        if cycle != result.cycle:
            mean_w = self._schedule.mean_w(result.slot, cycle, self._begin_ns, self._supply.energy_j)
            result.cycle = cycle
            result.code = max(-self._most - 1, min(self._most, round(result.in_steps(mean_w))))
        return result.code


@dataclass
class _Result:
    slot: Slot
    in_steps: Callable[[float], float]  # of a mean power
    cycle: int | None = None
    code: int = 0
