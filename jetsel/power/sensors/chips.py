"""Where the power monitors on the I2C buses are: found by the chip's name, never by a number."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jetsel.power.sensors import sysfs

_ADDRESS = re.compile(r"^\d+-[0-9a-f]{4}\Z")  # bus and address of an I2C device: 1-0040


class Chip(NamedTuple):
    """One chip as one driver shows it."""

    device: str  # bus and address, 1-0040; the folder's own name where the tree does not say
    folder: Path  # of its files: .../hwmon/hwmonX or .../iio:deviceN


def chips(root: Path, prefix: str) -> list[Chip]:
    """Return the chips whose name begins with `prefix` (NVIDIA's own driver calls itself ina3221x), each folder once.

    Looks under bus/i2c/devices and bus/i2c/drivers, class/hwmon and bus/iio/devices, so a tree with one of them is
    enough. In the order of bus and address.
    """
    found: dict[str, Chip] = {}
    for folder in _folders(root, prefix):
        real = os.path.realpath(folder)
        if real not in found:
            found[real] = Chip(_device(folder, real), folder)
    return sorted(found.values(), key=lambda chip: (chip.device, str(chip.folder)))


def _folders(root: Path, prefix: str) -> Iterator[Path]:
    for device in sysfs.entries(root / "bus/i2c/devices"):
        if _is(device, prefix):
            yield from _inside(device)
    for device in sysfs.entries(root / "bus/i2c/drivers", f"{prefix}*/*-*"):
        yield from _inside(device)
    for folder in sysfs.entries(root / "class/hwmon") + sysfs.entries(root / "bus/iio/devices", "iio:device*"):
        if _is(folder, prefix):
            yield folder


def _inside(device: Path) -> Iterator[Path]:
    """The folders in which drivers put a device's files: hwmon since JetPack 5, iio on JetPack 4."""
    yield from sysfs.entries(device, "hwmon/hwmon*")
    yield from sysfs.entries(device, "iio:device*")


def _is(folder: Path, prefix: str) -> bool:
    return sysfs.text(folder / "name").lower().startswith(prefix)


def _device(folder: Path, real: str) -> str:
    """The chip's bus and address: part of the path, or where the folder's link `device` leads."""
    inside = (*reversed(folder.parts), *reversed(Path(real).parts), Path(os.path.realpath(folder / "device")).name)
    return next((part for part in inside if _ADDRESS.match(part)), folder.name)
