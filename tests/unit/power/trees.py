"""Trees of sysfs and traces for tests: the boards' own, and small ones with what a test needs in them."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jetsel.power.trace import Writer
from tests.data.sysfs_trees import SYSFS, Board, Channel, Chip, write

ALWAYS_EIO = Path("/proc/self/mem")  # nothing is mapped at address 0, so Linux answers with an input/output error


def copied(board: str, to: Path) -> Path:
    """A copy of a board's tree that a test may change; links stay links."""
    return Path(shutil.copytree(SYSFS / board, to / board, symlinks=True))


def hwmon(root: Path, *channels: Channel | None) -> Path:
    """Write a tree with one INA3221 as hwmon shows it, at 1-0040, on a board that is unknown; return its folder."""
    write(root, Board("a board", ("acme,board",), ina3221=(Chip(1, 0x40, "c240000.i2c", 3, channels),)))
    return root / "devices/c240000.i2c/i2c-1/1-0040/hwmon/hwmon3"


def iio(root: Path, *channels: Channel | None) -> Path:
    """Write the same as NVIDIA's driver of JetPack 4 shows it; return its folder."""
    write(root, Board("a board", ("acme,board",), iio=(Chip(1, 0x40, "c240000.i2c", 5, channels),)))
    return root / "devices/c240000.i2c/i2c-1/1-0040/iio:device5"


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


def written(path: Path, *rows: tuple[float, float | None, float | None]) -> Path:
    """Write a trace of two rails; return its path."""
    with path.open("w", encoding="utf-8") as file:
        writer = Writer(file, "jetson-tx2", ["VDD_IN", "VDD_SYS_GPU"], ["VDD_IN"], [0.15, None])
        for t_s, *watts in rows:
            writer.row(t_s, watts)
    return path
