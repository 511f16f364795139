"""What measures energy: a window that is opened, closed and read."""

from __future__ import annotations

from typing import Protocol

from jetsel.power.reading import Reading


class Window(Protocol):
    """An open window of time."""

    def close(self) -> Reading:
        """End the window and return what it took above idle power (Taylor et al., section 4.2)."""


class Meter(Protocol):
    """Measures the energy of what runs while a window is open. Windows may overlap; any thread may open one."""

    name: str  # of the rails that are read

    def window(self) -> Window:
        """Open a window that begins now."""
