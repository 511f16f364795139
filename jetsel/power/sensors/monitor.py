"""Power monitors on the I2C buses: where their chips are, and one channel of one as a rail."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from jetsel.power import sysfs
from jetsel.power.sensors.rail import Measured, RailError
from jetsel.power.sysfs import Number


class Chip(NamedTuple):
    """One chip as one driver shows it."""

    device: str  # bus and address: 1-0040
    folder: Path  # of its files: .../hwmon/hwmonX or .../iio:deviceN


def chips(root: Path, prefix: str) -> list[Chip]:
    """Return the chips under a root of sysfs whose name begins with `prefix`, by bus and address.

    They are found by name, never by a number: NVIDIA's own driver calls itself ina3221x. Files lie in a folder of
    hwmon since JetPack 5, of iio on JetPack 4.
    """
    devices = root / "bus/i2c/devices"
    return [
        Chip(device, folder)
        for device in sysfs.names(devices)
        if sysfs.text(devices / device / "name").startswith(prefix)
        for pattern in ("hwmon/hwmon*", "iio:device*")
        for folder in sorted((devices / device).glob(pattern))
    ]


class Files(NamedTuple):
    """Where one channel's numbers are: mV, mA, and power in units of `power_step_uw`. Not all need be there."""

    volts: Path
    amps: Path
    power: Path
    power_step_uw: int

    @property
    def are_there(self) -> bool:
        """Whether any of them is."""
        return self.volts.exists() or self.amps.exists() or self.power.exists()


class SupplyRail:
    """One rail, its files open. Power comes from the file of power where there is one, else it is mV x mA = uW."""

    def __init__(self, name: str, where: str, files: Files, volts_step: float, amps_step: float | None) -> None:
        """Open what is there and read it; raises RailError where no power can be read.

        volts_step, amps_step: what the chip can tell apart, None where it is not known. The step in watts is that of
        both, each moved by one, at the voltage and the current of the first reading.
        """
        self.name = name
        self.where = where
        self.resolution_w: float | None = None
        self.read_uj = None  # it does not count
        self._step_uw = files.power_step_uw
        self._power = Number(files.power) if files.power.exists() else None
        self._volts = Number(files.volts)
        self._amps = Number(files.amps)
        try:
            measured = self.measure()
        except RailError:
            self.close()
            raise
        if measured.volts is not None and measured.amps is not None and amps_step is not None:
            self.resolution_w = measured.volts * amps_step + abs(measured.amps) * volts_step

    def read_uw(self) -> int:
        """Return the power in microwatts; raises RailError. One system call, two where there is no file of power."""
        if self._power is not None:
            return self._power.read() * self._step_uw
        return self._volts.read() * self._amps.read()

    def measure(self) -> Measured:
        """Return power, voltage and current, these two None if only power is known; raises RailError."""
        if self._power is None:
            volts, amps = self._volts.read(), self._amps.read()
            return Measured(volts * amps / 1e6, volts / 1e3, amps / 1e3)
        watts = self.read_uw() / 1e6
        if not (self._volts.path.exists() and self._amps.path.exists()):
            return Measured(watts, None, None)
        return Measured(watts, self._volts.read() / 1e3, self._amps.read() / 1e3)

    def close(self) -> None:
        """Close its files."""
        for number in (self._power, self._volts, self._amps):
            if number is not None:
                number.close()
