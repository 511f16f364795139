"""Finding the channels in a tree of sysfs files: iio of JetPack 4, hwmon (INA3221, INA238), powercap (RAPL)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

UNUSED = re.compile("NC|sum of shunt.*", re.IGNORECASE)  # labels of what is no supply
DEFAULT_SHUNT_OHM = 0.010  # of Linux's drivers; NVIDIA's boards have 2 to 20 mOhm
_DEVICE = re.compile(r"\d+-[0-9a-f]{4}")  # bus and address of an I2C device: 1-0040


@dataclass(frozen=True)
class Found:
    """One channel: its files by what they say (see texts.py), relative to the tree."""

    kind: str  # jetpack4, hwmon, ina238 or rapl
    folder: str
    channel: int  # from 0
    label: str
    files: dict[str, str]  # path -> role
    nominal_v: float
    shunt_ohm: float
    owns: Callable[[str], object]  # whether a file of that name in the folder is the channel's
    enabled: bool = True


def scan(tree: Path) -> list[Found]:
    """Return the channels that have files to read, by folder; a label that is missing, or there twice, is made up."""
    found: list[Found] = []
    for folder, _, names in sorted(os.walk(tree)):
        if "name" in names:
            found += _channels(tree, Path(folder), set(names))
    often = Counter(one.label for one in found)
    return [one if often[one.label] == 1 else replace(one, label=f"{one.label} in {one.folder}") for one in found]


def _channels(tree: Path, folder: Path, names: set[str]) -> Iterator[Found]:
    chip = (folder / "name").read_text().strip()
    if "energy_uj" in names:
        yield _rapl(tree, folder, chip)
    elif chip == "ina238" and "power1_input" in names:  # the I2C device has that name too, in the folder above
        yield _ina238(tree, folder, names)
    elif chip in ("ina3221", "ina3221x"):
        one = _jetpack4 if any(name.startswith("rail_name_") for name in names) else _hwmon
        every = (one(tree, folder, channel, names) for channel in range(3))
        yield from (each for each in every if each.files and not UNUSED.fullmatch(each.label))


def _jetpack4(tree: Path, folder: Path, channel: int, names: set[str]) -> Found:
    roles = {
        f"in_{quantity}{channel}{variant}_input": quantity
        for quantity in ("voltage", "current", "power")
        for variant in ("", "_trigger")
    }
    shunt = folder.parent / f"of_node/channel@{channel}/ti,shunt-resistor-mohm"  # as the device tree has it: big-endian
    return Found(
        kind="jetpack4",
        folder=_relative(tree, folder),
        channel=channel,
        label=_label(folder / f"rail_name_{channel}", channel),
        files=_files(tree, folder, roles, names),
        nominal_v=_number(folder / f"in_voltage{channel}_input", 5000) / 1e3,
        shunt_ohm=int.from_bytes(shunt.read_bytes(), "big") / 1e3 if shunt.exists() else DEFAULT_SHUNT_OHM,
        owns=re.compile(rf"(rail_name|\w+_limit)_{channel}|in_[a-z]+{channel}_\w+|ui_input_{channel}").fullmatch,
    )


def _hwmon(tree: Path, folder: Path, channel: int, names: set[str]) -> Found:
    number = channel + 1
    roles = {f"in{number}_input": "voltage", f"curr{number}_input": "current", f"in{number + 3}_input": "shunt"}
    return Found(
        kind="hwmon",
        folder=_relative(tree, folder),
        channel=channel,
        label=_label(folder / f"in{number}_label", number),
        files=_files(tree, folder, roles, names),
        nominal_v=_number(folder / f"in{number}_input", 5000) / 1e3,
        shunt_ohm=_number(folder / f"shunt{number}_resistor", DEFAULT_SHUNT_OHM * 1e6) / 1e6,
        owns=re.compile(rf"(in|curr){number}_\w+|in{number + 3}_\w+|shunt{number}_resistor").fullmatch,
        enabled=_text(folder / f"in{number}_enable") != "0",
    )


def _ina238(tree: Path, folder: Path, names: set[str]) -> Found:
    roles = {"in1_input": "voltage", "in0_input": "shunt", "curr1_input": "current", "power1_input": "power"}
    return Found(
        kind="ina238",
        folder=_relative(tree, folder),
        channel=0,
        label=_text(folder / "in1_label") or "VIN",
        files=_files(tree, folder, roles, names),
        nominal_v=_number(folder / "in1_input", 12_000) / 1e3,
        shunt_ohm=_number(folder / "shunt_resistor", DEFAULT_SHUNT_OHM * 1e6) / 1e6,
        owns=re.compile(r"(in[01]|curr1|power1)_\w+").fullmatch,
    )


def _rapl(tree: Path, folder: Path, name: str) -> Found:
    parent = folder.parent / "name"
    return Found(
        kind="rapl",
        folder=_relative(tree, folder),
        channel=0,
        label=f"{_text(parent)}/{name}" if (folder.parent / "energy_uj").exists() else name,
        files=_files(tree, folder, {"energy_uj": "energy"}, {"energy_uj"}),
        nominal_v=1.0,
        shunt_ohm=1.0,
        owns=("energy_uj", "name", "max_energy_range_uj").__contains__,
    )


def _label(file: Path, number: int) -> str:
    """What the file says, else bus, address and number: 1-0040/2."""
    device = next((part for part in reversed(file.parts) if _DEVICE.fullmatch(part)), file.parent.name)
    return _text(file) or f"{device}/{number}"


def _files(tree: Path, folder: Path, roles: dict[str, str], names: set[str]) -> dict[str, str]:
    return {_relative(tree, folder / name): role for name, role in roles.items() if name in names}


def _text(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


def _number(file: Path, otherwise: float) -> float:
    """What a file says, where that is a number other than 0."""
    try:
        return float(_text(file)) or otherwise
    except ValueError:
        return otherwise


def _relative(tree: Path, path: Path) -> str:
    return path.relative_to(tree).as_posix()
