"""Writes tests/data/sysfs: `python -m tests.data.sysfs_trees`. What each board's power monitors look like to Linux.

README.md beside it says from which documents. The numbers in file names (hwmonX, iio:deviceN) are odd on purpose.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path(__file__).parent / "sysfs"
DEFAULT_SHUNT_UOHM = 10000  # what both drivers take where the device tree gives none


@dataclass(frozen=True)
class Channel:
    """A channel in use: label, mV, mA, and the shunt in micro-ohms where a document gives it."""

    label: str
    mv: int
    ma: int
    shunt_uohm: int | None = None


NC = Channel("NC", 0, 0, 2000)


@dataclass(frozen=True)
class Chip:
    """One chip. number: of its hwmonX or iio:deviceN. channels: by index from 0, None where one is missing."""

    bus: int
    address: int
    controller: str  # under devices/: 3160000.i2c
    number: int
    channels: tuple[Channel | None, ...]

    @property
    def device(self) -> str:
        return f"{self.bus}-{self.address:04x}"


@dataclass(frozen=True)
class Board:
    """One board: what its device tree says, and its chips by driver."""

    model: str
    compatible: tuple[str, ...]
    iio: tuple[Chip, ...] = ()
    ina3221: tuple[Chip, ...] = ()
    ina238: tuple[Chip, ...] = ()


TX2_MODULE = (
    Chip(
        0, 0x40, "3160000.i2c", 7,
        (
            Channel("VDD_SYS_GPU", 19064, 24, 10000),
            Channel("VDD_SYS_SOC", 19064, 32, 10000),
            Channel("VDD_4V0_WIFI", 4792, 4, 10000),
        ),
    ),
    Chip(
        0, 0x41, "3160000.i2c", 2,
        (
            Channel("VDD_IN", 19072, 160, 5000),
            Channel("VDD_SYS_CPU", 19064, 28, 10000),
            Channel("VDD_SYS_DDR", 4792, 96, 10000),
        ),
    ),
)  # fmt: skip
TX2_CARRIER = (
    Chip(
        0, 0x42, "3160000.i2c", 5,
        (
            Channel("VDD_MUX", 19088, 240, 20000),
            Channel("VDD_5V0_IO_SYS", 4992, 152, 5000),
            Channel("VDD_3V3_SYS", 3312, 100, 10000),
        ),
    ),
    Chip(
        0, 0x43, "3160000.i2c", 11,
        (
            Channel("VDD_3V3_IO_SLP", 3304, 12, 10000),
            Channel("VDD_1V8_IO", 1792, 20, 10000),
            Channel("VDD_3V3_SYS_M2", 3312, 8, 10000),
        ),
    ),
)  # fmt: skip
ORIN_NANO = (
    Channel("VDD_IN", 5048, 856, 5000),
    Channel("VDD_CPU_GPU_CV", 5048, 104, 5000),
    Channel("VDD_SOC", 5048, 264, 5000),
)

BOARDS = {
    "jetson-tx2": Board("quill", ("nvidia,p2597-0000+p3310-1000", "nvidia,tegra186"), iio=TX2_MODULE),
    "jetson-tx2-carrier": Board(
        "quill", ("nvidia,p2597-0000+p3310-1000", "nvidia,tegra186"), iio=TX2_MODULE + TX2_CARRIER
    ),
    "jetson-nano": Board(
        "NVIDIA Jetson Nano Developer Kit",
        ("nvidia,p3449-0000-b00+p3448-0000-b00", "nvidia,jetson-nano", "nvidia,tegra210"),
        iio=(
            Chip(
                6, 0x40, "7000c400.i2c", 3,
                (Channel("POM_5V_IN", 5072, 424), Channel("POM_5V_GPU", 5064, 8), Channel("POM_5V_CPU", 5064, 96)),
            ),
        ),
    ),
    "jetson-xavier-nx": Board(
        "NVIDIA Jetson Xavier NX Developer Kit",
        ("nvidia,p3449-0000+p3668-0000", "nvidia,p3509-0000+p3668-0000", "nvidia,tegra194"),
        iio=(
            Chip(
                7, 0x40, "c240000.i2c", 4,
                (
                    Channel("VDD_IN", 4968, 704, 5000),
                    Channel("VDD_CPU_GPU_CV", 4968, 80, 5000),
                    Channel("VDD_SOC", 4968, 192, 5000),
                ),
            ),
        ),
    ),
    "jetson-agx-xavier": Board(
        "Jetson-AGX",
        ("nvidia,galen", "nvidia,jetson-xavier", "nvidia,p2822-0000+p2888-0001", "nvidia,tegra194"),
        iio=(
            Chip(
                1, 0x40, "c240000.i2c", 9,
                (Channel("GPU", 19072, 16), Channel("CPU", 19072, 24), Channel("SOC", 19072, 48)),
            ),
            Chip(
                1, 0x41, "c240000.i2c", 6,
                (Channel("CV", 19072, 0), Channel("VDDRQ", 19072, 16), Channel("SYS5V", 19064, 80)),
            ),
        ),
    ),
    "jetson-orin-nano": Board(
        "NVIDIA Jetson Orin Nano Developer Kit",
        ("nvidia,p3768-0000+p3767-0005", "nvidia,p3767-0005", "nvidia,tegra234"),
        ina3221=(Chip(1, 0x40, "platform/bus@0/c240000.i2c", 13, ORIN_NANO),),
    ),
    "jetson-agx-orin": Board(
        "NVIDIA Jetson AGX Orin Developer Kit",
        ("nvidia,p3737-0000+p3701-0005", "nvidia,p3701-0005", "nvidia,tegra234"),
        ina3221=(
            Chip(
                1, 0x40, "platform/bus@0/c240000.i2c", 8,
                (
                    Channel("VDD_GPU_SOC", 12008, 280, 2000),
                    Channel("VDD_CPU_CV", 12008, 40, 2000),
                    Channel("VIN_SYS_5V0", 4968, 980, 2000),
                ),
            ),
            Chip(
                1, 0x41, "platform/bus@0/c240000.i2c", 3,
                (NC, Channel("VDDQ_VDD2_1V8AO", 4968, 80, 2000), None),
            ),
        ),
    ),
    "jetson-agx-thor": Board(
        "NVIDIA Jetson AGX Thor Developer Kit",
        ("nvidia,p3971-0080+p3834-0008", "nvidia,p3834-0008", "nvidia,tegra264"),
        ina3221=(
            Chip(
                2, 0x40, "platform/bus@0/810c630000.i2c", 6,
                (
                    Channel("VDD_GPU", 12040, 640, 2000),
                    Channel("VDD_CPU_SOC_MSS", 12040, 960, 2000),
                    Channel("VIN_SYS_5V0", 5088, 1740, 2000),
                ),
            ),
        ),
        ina238=(Chip(2, 0x44, "platform/bus@0/810c630000.i2c", 5, (Channel("", 19087, 1498),)),),
    ),
}  # fmt: skip


def write(root: Path, board: Board) -> None:
    """Write one board's tree under a root that is the root of its sysfs."""
    tree = root / "firmware/devicetree/base"
    _put(tree / "model", board.model.encode() + b"\0")
    _put(tree / "compatible", b"".join(name.encode() + b"\0" for name in board.compatible))
    for chip in board.iio:
        device = _device(root, chip, "ina3221x")
        folder = device / f"iio:device{chip.number}"
        for name, text in _iio(chip):
            _put(folder / name, f"{text}\n".encode())
        _link(root / f"bus/iio/devices/{folder.name}", folder)
        node = tree / f"i2c@{chip.controller.split('.')[0]}/ina3221x@{chip.address:x}"
        for index, channel in enumerate(chip.channels):
            _of_channel(node / f"channel@{index}", index, channel)
        _link(device / "of_node", node)
    for driver, chips, files in (("ina3221", board.ina3221, _ina3221), ("ina238", board.ina238, _ina238)):
        for chip in chips:
            device = _device(root, chip, driver)
            folder = device / f"hwmon/hwmon{chip.number}"
            for name, text in files(chip):
                _put(folder / name, f"{text}\n".encode())
            _link(folder / "device", device)
            _link(root / f"class/hwmon/{folder.name}", folder)


def _device(root: Path, chip: Chip, driver: str) -> Path:
    """The device's own folder, with the links to it by bus and by driver."""
    device = root / f"devices/{chip.controller}/i2c-{chip.bus}/{chip.device}"
    _put(device / "name", f"{driver}\n".encode())
    for link in (f"bus/i2c/devices/{chip.device}", f"bus/i2c/drivers/{driver}/{chip.device}"):
        _link(root / link, device)
    return device


def _iio(chip: Chip) -> Iterator[tuple[str, str | int]]:
    """The files of NVIDIA's driver on JetPack 4; power is what it computes, rounded down."""
    yield "name", "ina3221x"
    yield "running_mode", 1
    for index, channel in enumerate(chip.channels):
        if channel is not None:
            yield f"rail_name_{index}", channel.label
            yield f"in_voltage{index}_input", channel.mv
            yield f"in_current{index}_input", channel.ma
            yield f"in_power{index}_input", channel.mv * channel.ma // 1000
            yield f"warn_current_limit_{index}", 32760
            yield f"crit_current_limit_{index}", 32760


def _of_channel(node: Path, index: int, channel: Channel | None) -> None:
    if channel is not None:
        _put(node / "reg", struct.pack(">I", index))
        _put(node / "ti,rail-name", channel.label.encode() + b"\0")
        if channel.shunt_uohm is not None:
            _put(node / "ti,shunt-resistor-mohm", struct.pack(">I", channel.shunt_uohm // 1000))


def _ina3221(chip: Chip) -> Iterator[tuple[str, str | int]]:
    """The files of the kernel's driver: in4 to in6 are the shunts in uV, in7 their sum, curr4 the sum of currents."""
    yield "name", "ina3221"
    yield "samples", 1
    yield "update_interval", 7  # ms, of six conversions of 1.1 ms, as Linux rounds it
    for number, channel in enumerate(chip.channels, start=1):
        if channel is not None:
            yield f"in{number}_label", channel.label
            yield f"in{number}_input", channel.mv
            yield f"in{number}_enable", 1
            yield f"curr{number}_input", channel.ma
            yield f"curr{number}_max", 32760
            yield f"curr{number}_crit", 32760
            yield f"in{number + 3}_input", _shunt_uv(channel)
            yield f"shunt{number}_resistor", channel.shunt_uohm or DEFAULT_SHUNT_UOHM
    yield "in7_label", "sum of shunt voltages"
    yield "in7_input", sum(_shunt_uv(channel) for channel in chip.channels if channel)
    yield "curr4_input", sum(channel.ma for channel in chip.channels if channel)


def _ina238(chip: Chip) -> Iterator[tuple[str, str | int]]:
    """The files of the kernel's driver, which has no labels."""
    (channel,) = chip.channels
    assert channel is not None
    yield "name", "ina238"
    yield "in0_input", _shunt_uv(channel) // 1000
    yield "in1_input", channel.mv
    yield "curr1_input", channel.ma
    yield "power1_input", channel.mv * channel.ma
    yield "shunt_resistor", channel.shunt_uohm or DEFAULT_SHUNT_UOHM
    yield "temp1_input", 42000


def _shunt_uv(channel: Channel) -> int:
    return channel.ma * (channel.shunt_uohm or DEFAULT_SHUNT_UOHM) // 1000


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))


if __name__ == "__main__":
    for name, board in BOARDS.items():
        write(SYSFS / name, board)
