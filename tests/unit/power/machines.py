"""Small trees of files as boards have them, below a folder of the test's."""

from collections.abc import Mapping
from pathlib import Path

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
