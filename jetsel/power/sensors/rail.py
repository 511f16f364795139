"""What every sensor offers: rails, each with a name and a power that can be read now, and how they relate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from jetsel.wire.power import DroppedRail


class RailError(Exception):
    """A rail cannot be read now; the text is the reason, in words for people. Islands keep it to themselves."""


class RailReading(NamedTuple):
    """One reading in full. volts and amps: None if the sensor has none."""

    watts: float
    volts: float | None
    amps: float | None


class Rail(Protocol):
    """One supply rail of one sensor. Used by one thread at a time; its files are opened once and stay open."""

    name: str  # as the board labels it: VDD_IN
    where: str  # for people: the file or device that is read
    resolution_w: float | None  # the step between two values, None if it is not known

    @property
    def read_uj(self) -> Callable[[], int] | None:
        """What returns the microjoules counted since it was opened, for a rail that counts energy, else None.

        It raises RailError. Of two readings the difference is exact, if that of power is a mean of some time.
        """

    def read_uw(self) -> int:
        """Return the power in microwatts by the fewest system calls there are; raises RailError."""

    def measure(self) -> RailReading:
        """Return power, voltage and current; raises RailError."""

    def close(self) -> None:
        """Close its files."""


@dataclass(frozen=True)
class Detected:
    """What looking for one kind of sensor gives.

    total: names of rails that make the whole of what this sensor sees, the dropped ones too; () if only a table of
    boards knows. parts: of a rail that contains others, their names: never added to it.
    """

    rails: tuple[Rail, ...] = ()
    dropped: tuple[DroppedRail, ...] = ()
    total: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def opened(candidates: Iterable[tuple[str, Callable[[], Rail]]]) -> tuple[tuple[Rail, ...], tuple[DroppedRail, ...]]:
    """Open each rail; one whose opening raises RailError is dropped under its name with the error's words."""
    rails: list[Rail] = []
    dropped: list[DroppedRail] = []
    for name, open_rail in candidates:
        try:
            rails.append(open_rail())
        except RailError as error:  # noqa: PERF203  # a few rails, once
            dropped.append(DroppedRail(name, str(error)))
    return tuple(rails), tuple(dropped)
