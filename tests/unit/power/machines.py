"""Small trees of files as boards have them, below a folder of the test's."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from jetsel.power.idle import IdlePower
from tests.data.sysfs_trees import write

CPUS = "sys/devices/system/cpu"
GPU = "sys/class/devfreq/17000000.gp10b"
THERMAL = "sys/class/thermal"

# A TX2 with JetPack 4.6.1: two clusters, the Denver cores (1 and 2) off, as in its power mode 3.
TX2 = {
    "sys/firmware/devicetree/base/model": "quill\0",
    "etc/nv_tegra_release": "# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t186ref, EABI: aarch64\n",
    "var/lib/nvpmodel/status": "pmode:0003 fmode:quiet\n",
    "etc/nvpmodel.conf": "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=3 NAME=MAXP_CORE_ARM >\n",
    f"{CPUS}/online": "0,3-5\n",
    f"{CPUS}/cpufreq/policy0/scaling_cur_freq": "345600\n",
    f"{CPUS}/cpufreq/policy0/scaling_min_freq": "345600\n",
    f"{CPUS}/cpufreq/policy0/scaling_max_freq": "2035200\n",
    f"{CPUS}/cpufreq/policy0/scaling_governor": "schedutil\n",
    f"{GPU}/cur_freq": "1122000000\n",
    f"{GPU}/min_freq": "114750000\n",
    f"{GPU}/max_freq": "1122000000\n",
    f"{GPU}/governor": "nvhost_podgov\n",
    f"{GPU}/device/load": "950\n",
    f"{THERMAL}/thermal_zone0/type": "BCPU-therm\n",
    f"{THERMAL}/thermal_zone0/temp": "41500\n",
    f"{THERMAL}/thermal_zone0/trip_point_0_type": "passive\n",
    f"{THERMAL}/thermal_zone0/trip_point_0_temp": "95500\n",
    f"{THERMAL}/thermal_zone0/trip_point_1_type": "critical\n",
    f"{THERMAL}/thermal_zone0/trip_point_1_temp": "101000\n",
    f"{THERMAL}/cooling_device0/type": "bcpu-throttle-alert\n",
    f"{THERMAL}/cooling_device0/cur_state": "0\n",
    f"{THERMAL}/cooling_device0/max_state": "1\n",
    "sys/class/hwmon/hwmon2/name": "soctherm_oc\n",
    "sys/class/hwmon/hwmon2/oc1_irq_cnt": "4\n",
    "sys/class/hwmon/hwmon2/oc1_priority": "0\n",
    "sys/class/hwmon/hwmon2/oc2_irq_cnt": "0\n",
    "sys/bus/i2c/devices/0-0041/name": "ina3221x\n",
    "sys/bus/i2c/devices/0-0041/iio:device1/rail_name_0": "VDD_IN\n",
    "sys/bus/i2c/devices/0-0041/iio:device1/in_current0_input": "1200\n",
}

IDLE = IdlePower(
    mean_w=3.1,
    half_width_w=0.02,
    drift_w_per_min=0.001,
    samples=1200,
    seconds=60.0,
    rails=("VDD_IN",),
    board="jetson-tx2",
    power_mode="0 MAXN",
    measured_at="2026-11-21T19:31:00+00:00",
)


def put(root: Path, files: Mapping[str, str]) -> Path:
    """Write these files below `root`, and return it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def tx2(root: Path) -> Path:
    """Make a TX2 below `root`, and return its sysfs."""
    return put(root, TX2) / "sys"


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
