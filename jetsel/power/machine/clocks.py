"""Clocks of CPU and GPU from cpufreq and devfreq, whether they are pinned, and the GPU's load."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jetsel.power import sysfs
from jetsel.power.machine.facts import ClockReading, Fact, Known

GPU_NAMES = ("gm20b", "gp10b", "gv11b", "ga10b", "gpu", "gpu-gpc-0")
"""Endings of the GPU's devfreq device: Nano, TX2, Xavier, Orin; `17000000.gpu` and `57000000.gpu` too; Thor.

Thor's `gpu-nvd-0` is the clock of its video engines.
"""

_LOADS = ("devices/gpu.0/load", "devices/platform/gpu.0/load")  # L4T's links to the GPU's folder


def cores(root: Path) -> Fact:
    """Return the running CPU cores, such as "0-5". root: of sysfs, in every function of this file."""
    online = sysfs.read_text(root / "devices/system/cpu/online")
    return Fact(online) if online else Fact(None, "no devices/system/cpu/online")


def cpu(root: Path) -> Known[list[ClockReading]]:
    """Return the clock of each running cluster of CPU cores, named by its first core; cpufreq reports kHz."""
    cpufreq = root / "devices/system/cpu/cpufreq"
    policies = [name for name in sysfs.list_names(cpufreq) if name.startswith("policy")]
    readings = [_clock(name.replace("policy", "cpu"), cpufreq / name, "scaling_", 1e3) for name in policies]
    return _or_reason(readings, "no cpufreq")


def gpu(root: Path) -> Known[list[ClockReading]]:
    """Return the clock of each GPU; devfreq reports Hz."""
    return _or_reason([_clock(folder.name, folder, "", 1e6) for folder in _gpus(root)], "no devfreq GPU")


def gpu_load(root: Path) -> Known[float]:
    """Return the GPU's load, 0 to 1. L4T, NVIDIA's Linux, reports it per mille (nvgpu driver, `load`)."""
    for path in (*(folder / "device/load" for folder in _gpus(root)), *(root / load for load in _LOADS)):
        per_mille = sysfs.read_int(path)
        if per_mille is not None:
            return Known(per_mille / 1000)
    return Known(None, "no load file of a GPU")


def pinned(cpus: Known[list[ClockReading]], gpus: Known[list[ClockReading]]) -> Known[bool]:
    """Return whether the tool jetson_clocks seems to fix all clocks: each lowest allowed value equals the highest.

    Its own state needs root. A power mode that allows a single frequency looks the same.
    """
    clocks = [*(cpus.value or ()), *(gpus.value or ())]
    if not cpus.value:
        return Known(None, cpus.reason)
    if any(clock.lowest_mhz is None for clock in clocks):
        return Known(None, "a clock does not report its lowest allowed frequency")
    return Known(all(clock.lowest_mhz == clock.highest_mhz for clock in clocks))


def _gpus(root: Path) -> list[Path]:
    """Return the devfreq folder of each GPU."""
    devfreq = root / "class/devfreq"
    return [devfreq / name for name in sysfs.list_names(devfreq) if name.endswith(GPU_NAMES)]


def _clock(name: str, folder: Path, prefix: str, per_mhz: float) -> ClockReading | None:
    """Return a clock, None if its cores do not run. prefix: of its files' names. per_mhz: their unit, per MHz."""
    now, lowest, highest = (sysfs.read_int(folder / f"{prefix}{which}_freq") for which in ("cur", "min", "max"))
    if now is None or not highest:
        return None
    return ClockReading(
        name=name,
        now_mhz=now / per_mhz,
        lowest_mhz=None if lowest is None else lowest / per_mhz,
        highest_mhz=highest / per_mhz,
        governor=sysfs.read_text(folder / f"{prefix}governor") or None,
    )


def _or_reason(readings: Iterable[ClockReading | None], reason: str) -> Known[list[ClockReading]]:
    clocks = [clock for clock in readings if clock is not None]
    return Known(clocks) if clocks else Known(None, reason)
