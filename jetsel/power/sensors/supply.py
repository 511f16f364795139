"""A rail of a power monitor in sysfs: files of voltage, current and power, whichever of them its driver has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jetsel.power.sensors.rail import Measured, RailError
from jetsel.power.sensors.sysfs import Number

_TRIES = 3  # a chip that is in the middle of a conversion may answer "try again"
_PAUSE_S = 0.01


@dataclass(frozen=True)
class Files:
    """Where one channel's numbers are: mV, mA, and power in units of `power_step_uw`. Those not there are left out."""

    volts: Path
    amps: Path
    power: Path
    power_step_uw: int


class SupplyRail:
    """One rail, its files open. Power comes from the file of power where there is one, else it is mV x mA = uW."""

    def __init__(
        self, name: str, where: str, files: Files, resolution_w: Callable[[float, float], float | None]
    ) -> None:
        """Open what is there and read it; raises RailError where no power can be read.

        resolution_w: the step in watts at so many volts and amperes, those of the first reading.
        """
        self.name = name
        self.where = where
        self.resolution_w: float | None = None
        self.read_uj = None  # it does not count
        self._step_uw = files.power_step_uw
        self._power = _opened(files.power)
        self._volts = _opened(files.volts)
        self._amps = _opened(files.amps)
        try:
            measured = self._first(files)
        except RailError:
            self.close()
            raise
        if measured.volts is not None and measured.amps is not None:
            self.resolution_w = resolution_w(measured.volts, measured.amps)

    def read_uw(self) -> int:
        """Return the power in microwatts; raises RailError. One system call, two where there is no file of power."""
        if self._power is not None:
            return self._power.read() * self._step_uw
        if self._volts is None or self._amps is None:
            raise RailError(f"{self.where}: closed")
        return self._volts.read() * self._amps.read()

    def measure(self) -> Measured:
        """Return power, voltage and current, these two None where there is no file of theirs; raises RailError."""
        volts = None if self._volts is None else self._volts.read()
        amps = None if self._amps is None else self._amps.read()
        power_uw = self.read_uw() if self._power is not None or volts is None or amps is None else volts * amps
        return Measured(power_uw / 1e6, None if volts is None else volts / 1e3, None if amps is None else amps / 1e3)

    def close(self) -> None:
        """Close its files."""
        for number in (self._power, self._volts, self._amps):
            if number is not None:
                number.close()

    def _first(self, files: Files) -> Measured:
        if self._power is None and (self._volts is None or self._amps is None):
            missing = files.amps if self._amps is None else files.volts
            raise RailError(f"{missing}: there is no such file, or it may not be read")
        for _ in range(_TRIES - 1):
            try:
                return self.measure()
            except RailError:  # noqa: PERF203  # once for each rail
                time.sleep(_PAUSE_S)
        return self.measure()


def _opened(path: Path) -> Number | None:
    try:
        return Number(path)
    except RailError:
        return None
