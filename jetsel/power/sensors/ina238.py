"""The INA238, one channel, which gives power in uW (Thor): the kernel's Documentation/hwmon/ina238.rst."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from jetsel.power import sysfs
from jetsel.power.sensors.monitor import Chip, Files, SupplyRail, chips
from jetsel.power.sensors.rail import Detected, opened

# INA238 data sheet (TI SBOSA20), register maps: bus voltage 3.125 mV a bit; shunt voltage 5 uV a bit in the range of
# 163.84 mV, of which the calibration that the kernel's driver fixes (SHUNT_CAL 16384: 1 mA a bit at 20 mOhm) leaves
# 20 uV in the registers of current and power.
BUS_STEP_V = 3.125e-3
SHUNT_STEP_V = 20e-6

CHANNEL = 1
UNLABELLED = "VIN"
"""The driver has no labels. On the one board that has this chip, Thor, it watches the input of the whole board."""


def detect(root: Path, labels: Mapping[str, str]) -> Detected:
    """Return the rail of every INA238 under a root of sysfs; `labels` may name each by its device and channel."""
    found = [(labels.get(f"{chip.device}/{CHANNEL}", UNLABELLED), chip) for chip in chips(root, "ina238")]
    return Detected(*opened((name, partial(_rail, name, chip)) for name, chip in found))


def _rail(name: str, chip: Chip) -> SupplyRail:
    shunt_uohm = sysfs.number(chip.folder / "shunt_resistor")
    files = Files(chip.folder / "in1_input", chip.folder / "curr1_input", chip.folder / "power1_input", 1)
    amps_step = SHUNT_STEP_V / (shunt_uohm / 1e6) if shunt_uohm else None
    return SupplyRail(name, f"{chip.device}/{CHANNEL} in {chip.folder}", files, BUS_STEP_V, amps_step)
