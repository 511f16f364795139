"""The state of a board as facts, each a value or the reason why it is unknown, and comparisons of two states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")


class Known(Struct, Generic[T], frozen=True):
    """One fact about the board: its value, or None and the reason why it is unknown."""

    value: T | None
    reason: str | None = None

    def __str__(self) -> str:
        return str(self.value) if self.value is not None else f"unknown ({self.reason})"


Fact = Known[str]


class ClockReading(Struct, frozen=True, kw_only=True):
    """One adjustable clock: of a cluster of CPU cores, or of a GPU.

    lowest_mhz, highest_mhz: limits that power mode, jetson_clocks and temperature set now. governor: the kernel's rule
    that sets the clock. None: the kernel does not report it.
    """

    name: str
    now_mhz: float
    lowest_mhz: float | None = None
    highest_mhz: float
    governor: str | None = None

    @property
    def share(self) -> float:
        """The current clock as a share of the highest allowed one, 0 to 1."""
        return self.now_mhz / self.highest_mhz


NOT_KEPT = "not saved with the measurement"


class BoardFacts(Struct, frozen=True, kw_only=True):
    """The state of the board at one moment.

    l4t: release of NVIDIA's Linux. power_mode: number and name as in nvpmodel: "0 MAXN". jetson_clocks: True if clocks
    are fixed at their highest. cores: the running ones: "0-5". gpu_load: 0 to 1. zones_c: temperature of each thermal
    zone in °C. slowed: why the board is throttled now, in sentences; empty if it is not. alarms: how often each alarm
    (over-current, low voltage on Orin and later) was raised since the board started. jtop: version of jetson-stats, if
    it was used. battery_percent: charge, 0 to 100, None without a battery.
    """

    board: Fact
    l4t: Fact
    jetpack: Fact = Fact(None, NOT_KEPT)
    power_mode: Fact
    jetson_clocks: Known[bool]
    cores: Fact
    cpu_clocks: Known[list[ClockReading]]
    gpu_clocks: Known[list[ClockReading]]
    gpu_load: Known[float] = Known(None, NOT_KEPT)
    zones_c: dict[str, float] = {}
    slowed: list[str] = []
    alarms: dict[str, int] = {}
    jtop: Fact = Fact(None, NOT_KEPT)
    battery_percent: float | None = None


def comparable_facts(facts: BoardFacts) -> dict[str, Any]:
    """Return the facts that `differences` compares, as plain values to store in a calibration."""
    plain: dict[str, Any] = msgspec.to_builtins(facts)
    return {field.name: plain[field.name] for field in msgspec.structs.fields(BoardFacts) if field.required}


def restore_facts(plain: Mapping[str, Any]) -> BoardFacts | None:
    """Return the facts that `comparable_facts` stored in a calibration, None if there are none or they are invalid."""
    try:
        return msgspec.convert(plain, BoardFacts) if plain else None
    except msgspec.ValidationError:  # from another version of jetsel
        return None


CLOCK_TOLERANCE = 0.01  # share of the highest allowed clock, for rounding of drivers


def differences(before: BoardFacts, now: BoardFacts) -> list[str]:
    """Return what changed on the board, a text for each change: board, release, power mode, cores, clocks.

    Facts that are unknown in one of the two states are not compared.
    """
    changes = [
        f"{what} changed from {was!r} to {is_now!r}"
        for what, was, is_now in (
            ("board", before.board.value, now.board.value),
            ("L4T", before.l4t.value, now.l4t.value),
            ("power mode", before.power_mode.value, now.power_mode.value),
            ("running CPU cores", before.cores.value, now.cores.value),
            ("jetson_clocks", before.jetson_clocks.value, now.jetson_clocks.value),
        )
        if was is not None and is_now is not None and was != is_now
    ]
    changes += _clock_differences(before.cpu_clocks, now.cpu_clocks)
    return [*changes, *_clock_differences(before.gpu_clocks, now.gpu_clocks)]


def throttled(before: BoardFacts | None, now: BoardFacts) -> list[str]:
    """Return why the board is throttled now, and the alarms raised since the state `before`, if there is one."""
    counts = now.alarms if before is None else before.alarms
    return now.slowed + [
        f"{name}, an over-current or low-voltage alarm, was raised {count - counts[name]} more times"
        for name, count in now.alarms.items()
        if count > counts.get(name, count)
    ]


def _clock_differences(before: Known[list[ClockReading]], now: Known[list[ClockReading]]) -> Iterator[str]:
    """Yield a text for each clock whose highest allowed frequency or governor changed."""
    earlier = {clock.name: clock for clock in before.value or ()}
    for clock in now.value or ():
        was = earlier.get(clock.name)
        if was is None:  # its cores did not run, which is reported elsewhere
            continue
        if abs(clock.highest_mhz - was.highest_mhz) > CLOCK_TOLERANCE * was.highest_mhz:
            from_to = f"from {was.highest_mhz:.0f} to {clock.highest_mhz:.0f} MHz"
            yield f"highest allowed clock of {clock.name} changed {from_to}"
        if was.governor and clock.governor and was.governor != clock.governor:
            yield f"governor of {clock.name} changed from {was.governor!r} to {clock.governor!r}"
