"""The interface of every sensor: its rails (supply lines of the board), each with a power that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from jetsel.wire.power import DroppedRail


class RailError(Exception):
    """A rail cannot be read now; the text gives the reason. Callers in this package handle it."""


class RailReading(NamedTuple):
    """One reading of one rail. volts, amps: None if the sensor does not measure them."""

    watts: float
    volts: float | None
    amps: float | None


class Rail(Protocol):
    """One supply rail, as one sensor measures it, with open files; for one thread at a time."""

    name: str  # the board's label: VDD_IN
    where: str  # for people: the file or device that is read
    resolution_w: float | None  # smallest difference between two values, None if unknown

    @property
    def read_uj(self) -> Callable[[], int] | None:
        """A function that returns the microjoules counted since opening; None if the rail measures only power.

        The difference of two counts is exact even if the power is a mean over some time. It raises RailError.
        """

    def read_uw(self) -> int:
        """Return the power in microwatts with as few system calls as possible. Raises RailError."""

    def measure(self) -> RailReading:
        """Return power, voltage and current. Raises RailError."""

    def close(self) -> None:
        """Close its files."""


@dataclass(frozen=True)
class Detected:
    """The rails that one kind of sensor has.

    dropped: rails that cannot be read. total: names of the rails whose sum is all that this sensor measures, including
    dropped ones; () if the sensor does not know. parts: rail -> rails that it feeds, which are never added to it.
    """

    rails: tuple[Rail, ...] = ()
    dropped: tuple[DroppedRail, ...] = ()
    total: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def open_rails(openers: Iterable[tuple[str, Callable[[], Rail]]]) -> tuple[tuple[Rail, ...], tuple[DroppedRail, ...]]:
    """Return the rails that could be opened, and the others with the reason. openers: names, and how to open each."""
    rails: list[Rail] = []
    dropped: list[DroppedRail] = []
    for name, open_rail in openers:
        try:
            rails.append(open_rail())
        except RailError as error:  # noqa: PERF203  # a few rails, once
            dropped.append(DroppedRail(name, str(error)))
    return tuple(rails), tuple(dropped)
