"""The clocks of CPU and GPU as cpufreq and devfreq tell them, whether they are pinned, and how busy the GPU is."""

from __future__ import annotations

import os
from pathlib import Path

from jetsel.power.machine.facts import Clock, Fact, Known, Pinned
from jetsel.power.machine.files import names, read_number, read_text

GPU_NAMES = ("gm20b", "gp10b", "gv11b", "ga10b", "gpu", "gpu-gpc-0")
"""How a Jetson's devfreq device of the GPU ends: Nano, TX2, Xavier, Orin; `17000000.gpu` and `57000000.gpu` too; Thor.

Thor's `gpu-nvd-0` is the clock of its video engines.
"""

PINNED_HOW = "the lowest allowed clocks of CPU and GPU are compared with the highest"
"""jetson_clocks sets them equal; its own state needs root. A power mode that leaves one clock alone looks the same."""

BUSY_SHARE, HELD_SHARE = 0.9, 0.9  # of the load; of the clock that was asked for
_LOADS = ("devices/gpu.0/load", "devices/platform/gpu.0/load")  # what L4T links to the GPU's own folder


class Clocks:
    """Reads them anew at each call; where they lie is looked for again when cores come or go."""

    def __init__(self, sysfs: Path) -> None:
        """sysfs: its root."""
        self._sysfs = sysfs
        self._found: tuple[str | None, list[str]] = (None, [])  # the cores that ran, the folders of their clocks

    def cores(self) -> Fact:
        """Return which CPU cores run."""
        online = read_text(self._sysfs / "devices/system/cpu/online")
        return Fact(online) if online else Fact(None, "no devices/system/cpu/online")

    def cpu(self) -> Known[list[Clock]]:
        """Return the clock of each cluster of cores that has its own."""
        cpus = str(self._sysfs / "devices/system/cpu")
        online = read_text(f"{cpus}/online")
        if not self._found[1] or online != self._found[0]:
            self._found = online, _clusters(cpus)
        read = [_cpu(folder) for folder in self._found[1]]
        found = [clock for clock in read if clock is not None]
        return Known(found) if found else Known(None, "no cpufreq")

    def gpu(self) -> Known[list[Clock]]:
        """Return the clock of each GPU."""
        folder = self._sysfs / "class/devfreq"
        read = [_gpu(folder / name) for name in names(folder) if name.endswith(GPU_NAMES)]
        found = [clock for clock in read if clock is not None]
        return Known(found) if found else Known(None, "no devfreq GPU")

    def gpu_load(self) -> Known[float]:
        """Return how busy the GPU is, 0 to 1. L4T tells it per mille (NVIDIA's nvgpu driver, `load`)."""
        devfreq = self._sysfs / "class/devfreq"
        own = [devfreq / name / "device/load" for name in names(devfreq) if name.endswith(GPU_NAMES)]
        for path in (*own, *(self._sysfs / load for load in _LOADS)):
            per_mille = read_number(path)
            if per_mille is not None:
                return Known(per_mille / 1000)
        return Known(None, "no load file of a GPU")


def pinned(cpu: Known[list[Clock]], gpu: Known[list[Clock]]) -> Pinned:
    """Infer whether jetson_clocks holds these clocks: the lowest that each is allowed is its highest."""
    clocks = [*(cpu.value or ()), *(gpu.value or ())]
    if not cpu.value:
        return Pinned(None, cpu.reason)
    if any(clock.lowest_mhz is None for clock in clocks):
        return Pinned(None, "a clock does not tell the lowest that it is allowed")
    return Pinned(all(clock.lowest_mhz == clock.highest_mhz for clock in clocks), how=PINNED_HOW)


def held(gpu: Known[list[Clock]], load: Known[float]) -> Known[list[str]]:
    """Name the GPUs that run slower under load than the governor asked them to: the hardware throttles them."""
    if gpu.value is None or load.value is None:
        return Known(None, gpu.reason or load.reason)
    asked = [(clock, max(clock.requested_mhz or 0, clock.lowest_mhz or 0)) for clock in gpu.value]
    return Known(
        [
            f"{clock.name} runs at {clock.now_mhz:.0f} MHz under load, and {wanted:.0f} MHz were asked for"
            for clock, wanted in asked
            if load.value >= BUSY_SHARE and clock.now_mhz < HELD_SHARE * wanted
        ]
    )


def _clusters(cpus: str) -> list[str]:
    """Return the folders of the clocks, each once: the cores of a cluster link to the same one."""
    cores = [name for name in names(cpus) if name.startswith("cpu") and name[3:].isdigit()]
    folders: dict[str, str] = {}
    for name in sorted(cores, key=lambda name: int(name[3:])):
        folder = f"{cpus}/{name}/cpufreq"
        if os.path.isdir(folder):  # noqa: PTH112  # not one of an offline core
            folders.setdefault(os.path.realpath(folder), folder)
    return list(folders.values())


def _cpu(folder: str) -> Clock | None:
    """Read one cluster's clock; cpufreq tells kHz."""
    now, lowest, highest = (read_number(f"{folder}/scaling_{name}_freq") for name in ("cur", "min", "max"))
    if now is None or not highest:
        return None
    return Clock(
        name=folder.split("/")[-2],
        now_mhz=now / 1e3,
        lowest_mhz=_scaled(lowest, 1e3),
        highest_mhz=highest / 1e3,
        governor=read_text(f"{folder}/scaling_governor"),
    )


def _gpu(folder: Path) -> Clock | None:
    """Read one GPU's clock; devfreq tells Hz."""
    now, lowest, highest, target = (read_number(folder / f"{name}_freq") for name in ("cur", "min", "max", "target"))
    if now is None or not highest:
        return None
    return Clock(
        name=folder.name,
        now_mhz=now / 1e6,
        lowest_mhz=_scaled(lowest, 1e6),
        highest_mhz=highest / 1e6,
        requested_mhz=_scaled(target, 1e6),
        governor=read_text(folder / "governor"),
    )


def _scaled(number: int | None, by: float) -> float | None:
    return None if number is None else number / by
