"""The interface of every sensor: rails, each with a name and a power that can be read, and their relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from jetsel.wire.power import DroppedRail


class RailError(Exception):
    """A rail cannot be read now; the text is the reason for people. It never leaves this package."""


class RailReading(NamedTuple):
    """One full reading. volts, amps: None if the sensor does not measure them."""

    watts: float
    volts: float | None
    amps: float | None


class Rail(Protocol):
    """One supply rail of one sensor, for one thread at a time; its files stay open."""

    name: str  # the board's label: VDD_IN
    where: str  # for people: the file or device that is read
    resolution_w: float | None  # the step between two values, None if unknown

    @property
    def read_uj(self) -> Callable[[], int] | None:
        """Returns the microjoules counted since opening, if the rail counts energy, otherwise None. Raises RailError.

        The difference of two counts is exact even if the power is a mean over some time.
        """

    def read_uw(self) -> int:
        """Return the power in microwatts with as few system calls as possible. Raises RailError."""

    def measure(self) -> RailReading:
        """Return power, voltage and current. Raises RailError."""

    def close(self) -> None:
        """Close its files."""


@dataclass(frozen=True)
class Detected:
    """The rails of one kind of sensor.

    total: names of the rails that make the whole of this sensor, including dropped ones; () if only the table of boards
    has it. parts: rail -> rails that it contains, which are never added to it.
    """

    rails: tuple[Rail, ...] = ()
    dropped: tuple[DroppedRail, ...] = ()
    total: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def open_rails(
    candidates: Iterable[tuple[str, Callable[[], Rail]]],
) -> tuple[tuple[Rail, ...], tuple[DroppedRail, ...]]:
    """Return the rails that could be opened, and the others with the text of their RailError."""
    rails: list[Rail] = []
    dropped: list[DroppedRail] = []
    for name, open_rail in candidates:
        try:
            rails.append(open_rail())
        except RailError as error:  # noqa: PERF203  # a few rails, once
            dropped.append(DroppedRail(name, str(error)))
    return tuple(rails), tuple(dropped)
