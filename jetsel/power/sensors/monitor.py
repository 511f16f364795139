"""Power monitors on the I2C buses: finding their chips, a rail for one channel, and Thor's INA238."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from jetsel.power import sysfs
from jetsel.power.sensors.rail import Detected, RailError, RailReading, open_rails
from jetsel.power.sysfs import NumberFile


class Chip(NamedTuple):
    """One power monitor chip, as one driver of the kernel shows it."""

    device: str  # bus and address: 1-0040
    folder: Path  # folder of its files: .../hwmon/hwmonX or .../iio:deviceN


def find_chips(root: Path, prefix: str) -> list[Chip]:
    """Return the chips below `root` (of sysfs) whose name begins with `prefix`, by bus and address.

    The prefix matters, as NVIDIA's driver has the name ina3221x. Files are in a folder of the kernel's hwmon since
    JetPack 5, of its iio on JetPack 4.
    """
    devices = root / "bus/i2c/devices"
    return [
        Chip(device, folder)
        for device in sysfs.list_names(devices)
        if sysfs.read_text(devices / device / "name").startswith(prefix)
        for pattern in ("hwmon/hwmon*", "iio:device*")
        for folder in sorted((devices / device).glob(pattern))
    ]


class ChannelFiles(NamedTuple):
    """Files of one channel, in mV, mA and units of `power_step_uw`. Some may not exist."""

    volts: Path
    amps: Path
    power: Path
    power_step_uw: int

    @property
    def any_exists(self) -> bool:
        """Whether at least one file exists."""
        return self.volts.exists() or self.amps.exists() or self.power.exists()


class SupplyRail:
    """A Rail of one channel. Power comes from the file of power if there is one, otherwise from mV x mA = uW."""

    def __init__(self, name: str, where: str, files: ChannelFiles, volts_step: float, amps_step: float | None) -> None:
        """Open the files and read them. Raises RailError if power cannot be read.

        name: of the rail. where: for people. volts_step, amps_step: resolution of the chip in V and A, None if unknown.
        resolution_w is the change of power if both move by one step, at the first reading's voltage and current.
        """
        self.name = name
        self.where = where
        self.resolution_w: float | None = None
        self.read_uj = None  # this sensor does not count energy
        self._step_uw = files.power_step_uw
        self._power = NumberFile(files.power) if files.power.exists() else None
        self._voltage_mv = NumberFile(files.volts)
        self._current_ma = NumberFile(files.amps)
        try:
            measured = self.measure()
        except RailError:
            self.close()
            raise
        if measured.volts is not None and measured.amps is not None and amps_step is not None:
            self.resolution_w = measured.volts * amps_step + abs(measured.amps) * volts_step

    def read_uw(self) -> int:
        """Return the power in microwatts by one system call, two without a file of power. Raises RailError."""
        if self._power is not None:
            return self._power.read() * self._step_uw
        return self._voltage_mv.read() * self._current_ma.read()

    def measure(self) -> RailReading:
        """Return watts, volts and amperes, the latter two None if unknown. Raises RailError."""
        if self._power is None:
            voltage_mv, current_ma = self._voltage_mv.read(), self._current_ma.read()
            return RailReading(voltage_mv * current_ma / 1e6, voltage_mv / 1e3, current_ma / 1e3)
        watts = self.read_uw() / 1e6
        if not (self._voltage_mv.path.exists() and self._current_ma.path.exists()):
            return RailReading(watts, None, None)
        return RailReading(watts, self._voltage_mv.read() / 1e3, self._current_ma.read() / 1e3)

    def close(self) -> None:
        """Close its files."""
        for number in (self._power, self._voltage_mv, self._current_ma):
            if number is not None:
                number.close()


# INA238 data sheet (TI SBOSA20), register maps: bus voltage 3.125 mV a bit; shunt voltage 5 uV a bit in the range of
# 163.84 mV, of which the calibration that the kernel's driver fixes (SHUNT_CAL 16384: 1 mA a bit at 20 mOhm) leaves
# 20 uV in the registers of current and power.
BUS_STEP_V = 3.125e-3
SHUNT_STEP_V = 20e-6

CHANNEL = 1
UNLABELLED = "VIN"
"""Name without a label, which the driver lacks: on Thor, the only board with this chip, it measures the whole input."""


def detect(root: Path, labels: Mapping[str, str]) -> Detected:
    """Return the rail of every INA238 below `root` (of sysfs). labels: "device/channel" -> configured name."""
    chips_by_label = [(labels.get(f"{chip.device}/{CHANNEL}", UNLABELLED), chip) for chip in find_chips(root, "ina238")]
    return Detected(*open_rails((name, partial(_ina238_rail, name, chip)) for name, chip in chips_by_label))


def _ina238_rail(name: str, chip: Chip) -> SupplyRail:
    shunt_uohm = sysfs.read_int(chip.folder / "shunt_resistor")
    files = ChannelFiles(chip.folder / "in1_input", chip.folder / "curr1_input", chip.folder / "power1_input", 1)
    amps_step = SHUNT_STEP_V / (shunt_uohm / 1e6) if shunt_uohm else None
    return SupplyRail(name, f"{chip.device}/{CHANNEL} in {chip.folder}", files, BUS_STEP_V, amps_step)
