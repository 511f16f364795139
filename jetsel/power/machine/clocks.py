"""The clocks of CPU and GPU as cpufreq and devfreq tell them, whether they are pinned, and how busy the GPU is."""

from __future__ import annotations

from pathlib import Path

from jetsel.power import sysfs
from jetsel.power.machine.facts import ClockReading, Fact, Known

GPU_NAMES = ("gm20b", "gp10b", "gv11b", "ga10b", "gpu", "gpu-gpc-0")
"""How a Jetson's devfreq device of the GPU ends: Nano, TX2, Xavier, Orin; `17000000.gpu` and `57000000.gpu` too; Thor.

Thor's `gpu-nvd-0` is the clock of its video engines.
"""

_LOADS = ("devices/gpu.0/load", "devices/platform/gpu.0/load")  # what L4T links to the GPU's own folder


def cores(root: Path) -> Fact:
    """Return which CPU cores run. root: of sysfs, here and below."""
    online = sysfs.text(root / "devices/system/cpu/online")
    return Fact(online) if online else Fact(None, "no devices/system/cpu/online")


def cpu(root: Path) -> Known[list[ClockReading]]:
    """Return the clock of each cluster of cores that runs, named by its first core; cpufreq tells kHz."""
    cpufreq = root / "devices/system/cpu/cpufreq"
    read = [
        _clock(
            name.replace("policy", "cpu"),
            *(sysfs.number(cpufreq / name / f"scaling_{which}_freq") for which in ("cur", "min", "max")),
            per_mhz=1e3,
            governor=sysfs.text(cpufreq / name / "scaling_governor"),
        )
        for name in sysfs.names(cpufreq)
        if name.startswith("policy")
    ]
    clocks = [clock for clock in read if clock is not None]
    return Known(clocks) if clocks else Known(None, "no cpufreq")


def gpu(root: Path) -> Known[list[ClockReading]]:
    """Return the clock of each GPU; devfreq tells Hz."""
    read = [
        _clock(
            folder.name,
            *(sysfs.number(folder / f"{which}_freq") for which in ("cur", "min", "max")),
            per_mhz=1e6,
            governor=sysfs.text(folder / "governor"),
        )
        for folder in _gpus(root)
    ]
    clocks = [clock for clock in read if clock is not None]
    return Known(clocks) if clocks else Known(None, "no devfreq GPU")


def gpu_load(root: Path) -> Known[float]:
    """Return how busy the GPU is, 0 to 1. L4T tells it per mille (NVIDIA's nvgpu driver, `load`)."""
    for path in (*(folder / "device/load" for folder in _gpus(root)), *(root / load for load in _LOADS)):
        per_mille = sysfs.number(path)
        if per_mille is not None:
            return Known(per_mille / 1000)
    return Known(None, "no load file of a GPU")


def pinned(cpus: Known[list[ClockReading]], gpus: Known[list[ClockReading]]) -> Known[bool]:
    """Infer whether jetson_clocks holds these clocks: the lowest that each is allowed is its highest.

    It sets them so; its own state needs root. A power mode that leaves each one clock alone looks the same.
    """
    clocks = [*(cpus.value or ()), *(gpus.value or ())]
    if not cpus.value:
        return Known(None, cpus.reason)
    if any(clock.lowest_mhz is None for clock in clocks):
        return Known(None, "a clock does not report its lowest allowed frequency")
    return Known(all(clock.lowest_mhz == clock.highest_mhz for clock in clocks))


def _gpus(root: Path) -> list[Path]:
    devfreq = root / "class/devfreq"
    return [devfreq / name for name in sysfs.names(devfreq) if name.endswith(GPU_NAMES)]


def _clock(
    name: str, now: int | None, lowest: int | None, highest: int | None, *, per_mhz: float, governor: str
) -> ClockReading | None:
    """Return a clock, None if it does not tell: its cores do not run."""
    if now is None or not highest:
        return None
    return ClockReading(
        name=name,
        now_mhz=now / per_mhz,
        lowest_mhz=None if lowest is None else lowest / per_mhz,
        highest_mhz=highest / per_mhz,
        governor=governor or None,
    )
