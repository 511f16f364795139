"""What measures energy: the protocol that every board's sensors will implement."""

from __future__ import annotations

from typing import Protocol

from jetsel.power.reading import Reading


class Meter(Protocol):
    """Measures the energy of what runs between two calls."""

    name: str  # of the rails that are read

    def idle_mw(self) -> float | None:
        """The power in milliwatts that the board takes when idle, None where it is not known."""

    def start(self) -> None:
        """Begin to integrate."""

    def stop(self) -> Reading:
        """Return the energy since `start` in millijoules, idle power deducted (Taylor et al., section 4.2)."""
