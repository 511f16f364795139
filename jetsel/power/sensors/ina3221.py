"""The INA3221, three channels of voltage and current on one chip: as NVIDIA's iio driver shows it, and as hwmon does.

Layouts: for hwmon (JetPack 5 and later, mainline) the kernel's Documentation/hwmon/ina3221.rst, channels from 1; for
iio (JetPack 4) the power monitor section of NVIDIA's L4T 32 developer guide, channels from 0, power in mW.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from jetsel.power.sensors import sysfs
from jetsel.power.sensors.chips import Chip, chips
from jetsel.power.sensors.rail import Dropped
from jetsel.power.sensors.sensed import Sensed, opened
from jetsel.power.sensors.supply import Files, SupplyRail

# INA3221 data sheet (TI SBOS576): one bit of the bus and of the shunt converter.
BUS_STEP_V = 8e-3
SHUNT_STEP_V = 40e-6
# Both drivers give whole milliamperes, which is the coarser step above 40 mOhm.
DRIVER_STEP_A = 1e-3

CHANNELS = 3
NOT_CONNECTED = "NC"
SUM = "sum of shunt"  # the label of in7, the chip's own sum of its shunt voltages: not a rail


class _Channel(NamedTuple):
    key: str  # device and channel as the driver counts, 1-0040/2
    label: str
    files: Files
    shunt_ohm: float | None


def sense(root: Path, labels: Mapping[str, str]) -> Sensed:
    """Return the rails of every INA3221 under a root of sysfs; `labels` names the channels that have no label."""
    named = [
        (labels.get(channel.key, channel.label), channel)
        for chip in chips(root, "ina3221")
        for channel in _channels(chip)
    ]
    rails, dropped = opened(
        (name, partial(_rail, name, channel)) for name, channel in named if sysfs.is_name(name) and _is_rail(name)
    )
    nameless = [
        Dropped(channel.key, _nameless(name, channel.key)) for name, channel in named if not sysfs.is_name(name)
    ]
    return Sensed(rails, (*dropped, *nameless))


def resolution_w(volts: float, amps: float, shunt_ohm: float) -> float:
    """Return the step in watts when voltage and current each move by one bit, at so many volts and amperes."""
    return volts * max(SHUNT_STEP_V / shunt_ohm, DRIVER_STEP_A) + abs(amps) * BUS_STEP_V


def _is_rail(name: str) -> bool:
    return name != NOT_CONNECTED and not name.lower().startswith(SUM)


def _rail(name: str, channel: _Channel) -> SupplyRail:
    def step(volts: float, amps: float) -> float | None:
        return None if channel.shunt_ohm is None else resolution_w(volts, amps, channel.shunt_ohm)

    return SupplyRail(name, f"{channel.key} in {channel.files.volts.parent}", channel.files, step)


def _channels(chip: Chip) -> Iterator[_Channel]:
    """Every channel that has a file, whether or not it has a label."""
    folder = chip.folder
    for index in range(CHANNELS):
        iio = Files(
            folder / f"in_voltage{index}_input",
            folder / f"in_current{index}_input",
            folder / f"in_power{index}_input",
            1000,
        )
        label = folder / f"rail_name_{index}"
        if _any_is_there(iio, label):
            yield _Channel(f"{chip.device}/{index}", sysfs.text(label), iio, _iio_shunt_ohm(folder, index))
    for number in range(1, CHANNELS + 1):
        hwmon = Files(folder / f"in{number}_input", folder / f"curr{number}_input", folder / f"power{number}_input", 1)
        label = folder / f"in{number}_label"
        if _any_is_there(hwmon, label):
            shunt_uohm = sysfs.number(folder / f"shunt{number}_resistor")
            shunt_ohm = shunt_uohm / 1e6 if shunt_uohm is not None and shunt_uohm > 0 else None
            yield _Channel(f"{chip.device}/{number}", sysfs.text(label), hwmon, shunt_ohm)


def _any_is_there(files: Files, label: Path) -> bool:
    return any(sysfs.exists(path) for path in (files.volts, files.amps, files.power, label))


def _iio_shunt_ohm(folder: Path, index: int) -> float | None:
    """The shunt as the device tree gives it to NVIDIA's driver, big-endian milliohms; None where it is not there."""
    blob = sysfs.blob(folder.resolve().parent / f"of_node/channel@{index}/ti,shunt-resistor-mohm")
    mohm = struct.unpack(">I", blob)[0] if len(blob) == 4 else 0
    return mohm / 1e3 if mohm else None


def _nameless(label: str, key: str) -> str:
    what = f"its label is no name: {label[:24]!r}" if label else "the channel has no label"
    return f'{what}; name it in jetsel.toml: [power] labels = {{ "{key}" = "NAME" }}'
