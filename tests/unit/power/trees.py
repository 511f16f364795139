"""Trees of sysfs for tests: the boards' own, and small ones with what a test needs in them."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.data.sysfs_trees import write

ALWAYS_EIO = Path("/proc/self/mem")  # nothing is mapped at address 0, so Linux answers with an input/output error


class Channel(NamedTuple):
    """A channel in use: label, mV, mA, and the shunt in micro-ohms."""

    label: str
    mv: int
    ma: int
    shunt_uohm: int = 10_000


def copied(board: str, to: Path) -> Path:
    """A board's tree that a test may change."""
    return write(board, to / board)


def hwmon(root: Path, *channels: Channel) -> Path:
    """Write a tree with one INA3221 as hwmon shows it, at 1-0040, on a board that is unknown; return its folder."""
    files: dict[str, object] = {"in7_label": "sum of shunt voltages", "in7_input": 4}
    for number, channel in enumerate(channels, start=1):
        files |= {f"in{number}_label": channel.label, f"in{number}_input": channel.mv}
        files |= {f"curr{number}_input": channel.ma, f"shunt{number}_resistor": channel.shunt_uohm}
    return _chip(root, "ina3221", "hwmon/hwmon3", files)


def iio(root: Path, *channels: Channel) -> Path:
    """Write the same as NVIDIA's driver of JetPack 4 shows it; return its folder."""
    files: dict[str, object] = {}
    for index, channel in enumerate(channels):
        files |= {f"rail_name_{index}": channel.label, f"in_voltage{index}_input": channel.mv}
        files |= {f"in_current{index}_input": channel.ma, f"in_power{index}_input": channel.mv * channel.ma // 1000}
    return _chip(root, "ina3221x", "iio:device5", files)


def _chip(root: Path, driver: str, shown: str, files: dict[str, object]) -> Path:
    device = root / "bus/i2c/devices/1-0040"
    folder = device / shown
    folder.mkdir(parents=True)
    (device / "name").write_text(f"{driver}\n")
    for name, content in files.items():
        (folder / name).write_text(f"{content}\n")
    return folder


def replace(path: Path, by: Path) -> None:
    """Put a link in a file's place."""
    path.unlink()
    path.symlink_to(by)


def zone(root: Path, folder: str, name: str, energy_uj: int = 1000, range_uj: int = 262_143_328_850) -> Path:
    """Write one zone of powercap, linked as Linux does it; return the file of its counter."""
    real = root / "devices/virtual/powercap/intel-rapl" / folder
    real.mkdir(parents=True)
    (real / "name").write_text(f"{name}\n")
    (real / "energy_uj").write_text(f"{energy_uj}\n")
    (real / "max_energy_range_uj").write_text(f"{range_uj}\n")
    link = root / "class/powercap" / folder
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(real, link.parent))
    return real / "energy_uj"


@contextmanager
def moving(*counters: Path) -> Iterator[None]:
    """Let counters move by 1 J every millisecond or so, in place as sysfs does."""
    stop = threading.Event()

    def move() -> None:
        files = [os.open(counter, os.O_WRONLY) for counter in counters]
        for step in range(1, 1_000_000):
            for file in files:
                os.pwrite(file, b"%020d\n" % (step * 1_000_000), 0)
            if stop.wait(0.001):
                break
        for file in files:
            os.close(file)

    thread = threading.Thread(target=move)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
