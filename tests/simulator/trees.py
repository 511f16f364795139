"""Small trees of sensor files for tests that are not about one board."""

from __future__ import annotations

from pathlib import Path


def iio(root: Path) -> Path:
    """Write an INA3221 as JetPack 4 shows it, and return its folder: VDD_IN, VDD_CPU, NC; 10 mOhm."""
    folder = root / "devices/3160000.i2c/i2c-0/0-0041/iio:device1"
    folder.mkdir(parents=True)
    _write(folder, {"name": "ina3221x"})
    for channel, label in enumerate(("VDD_IN", "VDD_CPU", "NC")):
        files = {f"rail_name_{channel}": label, f"crit_current_limit_{channel}": "32760"}
        _write(folder, files | {f"in_{what}{channel}_input": "0" for what in ("current", "power")})
        _write(folder, {f"in_voltage{channel}_input": "19000"})
    _link(root / "bus/i2c/devices/0-0041", "../../../devices/3160000.i2c/i2c-0/0-0041")
    return folder


def hwmon(root: Path) -> Path:
    """Write an INA3221 as Linux shows it, and return its folder: VDD_IN, VDD_CPU, VDD_SOC; 5 mOhm."""
    folder = root / "devices/c240000.i2c/i2c-1/1-0040/hwmon/hwmon3"
    folder.mkdir(parents=True)
    _write(folder, {"name": "ina3221", "in7_label": "sum of shunt voltages", "in7_input": "0", "curr4_input": "0"})
    for number, label in enumerate(("VDD_IN", "VDD_CPU", "VDD_SOC"), start=1):
        _write(folder, {f"in{number}_label": label, f"in{number}_input": "5000", f"in{number}_enable": "1"})
        _write(folder, {f"curr{number}_input": "0", f"in{number + 3}_input": "0", f"shunt{number}_resistor": "5000"})
    _link(root / "bus/i2c/devices/1-0040", "../../../devices/c240000.i2c/i2c-1/1-0040")
    return folder


def ina238(root: Path) -> Path:
    """Write an INA238, and return its folder: VIN of 12 V; 2 mOhm."""
    folder = root / "devices/i2c-2/2-0044/hwmon/hwmon5"
    folder.mkdir(parents=True)
    _write(folder, {"name": "ina238", "in0_input": "0", "in1_input": "12000", "curr1_input": "0", "power1_input": "0"})
    _write(folder, {"shunt_resistor": "2000"})
    _write(folder.parents[1], {"name": "ina238"})
    return folder


def rapl(root: Path) -> Path:
    """Write a processor's counters, and return the folder of its package; the counter of 1,000 J wraps around soon."""
    package = root / "devices/virtual/powercap/intel-rapl/intel-rapl:0"
    core = package / "intel-rapl:0:0"
    core.mkdir(parents=True)
    _write(package, {"name": "package-0", "energy_uj": "999999000", "max_energy_range_uj": "1000000000"})
    _write(core, {"name": "core", "energy_uj": "0", "max_energy_range_uj": "1000000000"})
    _link(root / "class/powercap/intel-rapl:0", "../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    return package


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text + "\n")


def _link(link: Path, target: str) -> None:
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
