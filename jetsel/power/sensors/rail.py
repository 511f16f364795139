"""What every sensor offers: rails, each with a name and a power that can be read now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class RailError(Exception):
    """A rail cannot be read now; the text is the reason, in words for people. Islands keep it to themselves."""


@dataclass(frozen=True)
class Measured:
    """One reading in full. volts and amps: None where the sensor has none."""

    watts: float
    volts: float | None
    amps: float | None


class Rail(Protocol):
    """One supply rail of one sensor. Used by one thread at a time; its files are opened once and stay open."""

    name: str  # as the board labels it: VDD_IN
    where: str  # for people: the file or device that is read
    resolution_w: float | None  # the step between two values, None where it is not known

    @property
    def read_uj(self) -> Callable[[], int] | None:
        """What returns the microjoules counted since it was opened, for a rail that counts energy, else None.

        It raises RailError. Of two readings the difference is exact, where that of power is a mean of some time.
        """

    def read_uw(self) -> int:
        """Return the power in microwatts by the fewest system calls there are; raises RailError."""

    def measure(self) -> Measured:
        """Return power, voltage and current; raises RailError."""

    def close(self) -> None:
        """Close its files."""


@dataclass(frozen=True)
class Dropped:
    """A rail, or what should have been one, that is not read, and why."""

    name: str
    reason: str
