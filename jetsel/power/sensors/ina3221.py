"""The INA3221, a chip with three channels of voltage and current, under NVIDIA's iio driver and under hwmon.

Layouts: for hwmon (JetPack 5 and later, mainline) the kernel's Documentation/hwmon/ina3221.rst, channels from 1; for
iio (JetPack 4) the power monitor section of NVIDIA's L4T 32 developer guide, channels from 0, power in mW.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from jetsel.power.sensors.monitor import ChannelFiles, Chip, SupplyRail, find_chips
from jetsel.power.sensors.rail import Detected, open_rails
from jetsel.power.sysfs import is_name, read_int, read_text
from jetsel.wire.power import DroppedRail

# INA3221 data sheet (TI SBOS576): one bit of the bus converter and of the shunt converter.
BUS_STEP_V = 8e-3
SHUNT_STEP_V = 40e-6
# Both drivers report whole milliamperes, the coarser step above 40 mOhm.
DRIVER_STEP_A = 1e-3

CHANNELS = 3
NOT_CONNECTED = "NC"


class _Channel(NamedTuple):
    """One channel of a chip. label: the board's name for its rail, "" if it has none."""

    key: str  # device and the driver's channel number, 1-0040/2
    label: str
    files: ChannelFiles
    shunt_ohm: float | None


def detect(root: Path, labels: Mapping[str, str]) -> Detected:
    """Return the rails of every INA3221 below `root` (of sysfs). labels: key of a channel -> configured name."""
    channels = [channel for chip in find_chips(root, "ina3221") for channel in _channels(chip)]
    named = [(labels.get(channel.key, channel.label), channel) for channel in channels]
    rails, dropped = open_rails(
        (name, partial(_rail, name, channel)) for name, channel in named if is_name(name) and name != NOT_CONNECTED
    )
    nameless = [(name, channel.key) for name, channel in named if not is_name(name)]
    return Detected(rails, (*dropped, *(DroppedRail(key, _no_name_reason(name, key)) for name, key in nameless)))


def _rail(name: str, channel: _Channel) -> SupplyRail:
    where = f"{channel.key} in {channel.files.volts.parent}"
    amps_step = max(SHUNT_STEP_V / channel.shunt_ohm, DRIVER_STEP_A) if channel.shunt_ohm else None
    return SupplyRail(name, where, channel.files, BUS_STEP_V, amps_step)


def _channels(chip: Chip) -> Iterator[_Channel]:
    """Yield every channel with a file, labelled or not. hwmon's in7 is a sum of shunts, not a channel."""
    channel_of, first = (_iio_channel, 0) if chip.folder.name.startswith("iio") else (_hwmon_channel, 1)
    for number in range(first, first + CHANNELS):
        channel = channel_of(chip, number)
        if channel.files.any_exists:
            yield channel


def _iio_channel(chip: Chip, number: int) -> _Channel:
    folder = chip.folder
    volts, amps, power = (folder / f"in_{what}{number}_input" for what in ("voltage", "current", "power"))
    label = read_text(folder / f"rail_name_{number}")
    return _Channel(
        f"{chip.device}/{number}", label, ChannelFiles(volts, amps, power, 1000), _iio_shunt_ohm(folder, number)
    )


def _hwmon_channel(chip: Chip, number: int) -> _Channel:
    folder = chip.folder
    volts, amps, power = (folder / f"{what}{number}_input" for what in ("in", "curr", "power"))
    label, shunt_uohm = (
        read_text(folder / f"in{number}_label"),
        read_int(folder / f"shunt{number}_resistor"),
    )
    return _Channel(f"{chip.device}/{number}", label, ChannelFiles(volts, amps, power, 1), (shunt_uohm or 0) / 1e6)


def _iio_shunt_ohm(folder: Path, number: int) -> float | None:
    """Return the shunt resistance from the device tree, where it is in big-endian milliohms; None if missing."""
    try:
        blob = (folder.resolve().parent / f"of_node/channel@{number}/ti,shunt-resistor-mohm").read_bytes()
    except OSError:
        return None
    return int.from_bytes(blob, "big") / 1e3


def _no_name_reason(label: str, key: str) -> str:
    """Return why a channel has no usable name, and the repair."""
    what = f"its label is not a valid name: {label[:24]!r}" if label else "the channel has no label"
    return f'{what}; name it in jetsel.toml: [power] labels = {{ "{key}" = "NAME" }}'
