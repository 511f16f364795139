"""What measures energy: a window that is opened, closed and read."""

from __future__ import annotations

import time
from typing import Protocol

from jetsel.power.integration import IdlePower, integrate
from jetsel.power.reading import Reading
from jetsel.power.source import Source, around

PATIENCE_S = 0.05
"""How long a window waits for a sample after its end: seven cycles of an INA3221 as Linux sets it up (6.6 ms)."""


class Window(Protocol):
    """An open window of time."""

    def close(self) -> Reading:
        """End the window and return what it took above idle power (Taylor et al., section 4.2)."""


class Meter(Protocol):
    """Measures the energy of what runs while a window is open. Windows may overlap; any thread may open one."""

    @property
    def name(self) -> str:
        """Return the rails that are read."""

    def window(self) -> Window:
        """Open a window that begins now."""


class SensorMeter:
    """The meter of a sampler. Of windows that overlap each counts all power: shares of it are the ledger's."""

    def __init__(self, sampler: Source, idle: IdlePower | None) -> None:
        """idle: None while it is not known; may be set later."""
        self.idle = idle
        self._sampler = sampler

    @property
    def name(self) -> str:
        """Return the rails that make the total."""
        return " + ".join(self._sampler.total_of)

    def window(self) -> SensorWindow:
        """Open a window that begins now; the sampler is fast until it is closed."""
        return SensorWindow(self, self._sampler)


class SensorWindow:
    """A window of a sampler's samples; closing it again returns the same reading. end_ns: None while it is open."""

    def __init__(self, meter: SensorMeter, sampler: Source) -> None:
        self._meter = meter
        self._sampler = sampler
        self._reading: Reading | None = None
        sampler.open()
        self.end_ns: int | None = None
        self.begin_ns = time.monotonic_ns()

    def close(self) -> Reading:
        """End the window now, wait a moment for a sample after its end, and integrate."""
        if self._reading is not None:
            return self._reading
        end_ns = self.end_ns = time.monotonic_ns()
        try:
            self._sampler.wait(end_ns, PATIENCE_S)
        finally:
            self._sampler.shut()
        if (reason := self._sampler.reason) is not None:
            self._reading = Reading(None, reason)
        else:
            samples = around(self._sampler, self.begin_ns, end_ns)
            self._reading = integrate(samples, self.begin_ns, end_ns, self._meter.idle)
        return self._reading
