"""Under which conditions a recording was made: board, power mode, clocks, libraries, load."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from jetsel import __version__
from jetsel.power.machine import Clock, Fact, Known, Machine

LIBRARIES = ("numpy", "opencv-python-headless", "onnxruntime")


class Conditions(Struct, frozen=True, kw_only=True):
    """One run's conditions at its start. versions: library -> version; load: 1, 5, 15 min."""

    board: Fact
    power_mode: Fact
    cpu_clock: Fact
    gpu_clock: Fact
    versions: Mapping[str, Fact]
    load: tuple[float, float, float]
    started: str

    @property
    def machine(self) -> tuple[str, ...]:
        """What times must share to be comparable: board, power mode and versions."""
        return (
            str(self.board),
            str(self.power_mode),
            *(f"{name} {fact}" for name, fact in sorted(self.versions.items())),
        )

    def described(self) -> dict[str, str]:
        """All of it in words."""
        return {
            "board": str(self.board),
            "power mode": str(self.power_mode),
            "CPU clock": str(self.cpu_clock),
            "GPU clock": str(self.gpu_clock),
            **{name: str(fact) for name, fact in self.versions.items()},
            "load average": ", ".join(f"{load:.2f}" for load in self.load),
            "started": self.started,
        }


def gather(sysfs: Path | str = "/sys") -> Conditions:
    """Read the machine's conditions. sysfs: as [power] has it."""
    facts = Machine(sysfs).facts()
    versions = {"python": Fact(platform.python_version()), "jetsel": Fact(__version__)}
    return Conditions(
        board=facts.board,
        power_mode=facts.power_mode,
        cpu_clock=_cpu_clock(facts.cpu_clocks),
        gpu_clock=_gpu_clock(facts.gpu_clocks),
        versions=versions | {name: _version(name) for name in LIBRARIES},
        load=os.getloadavg(),
        started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def _cpu_clock(clocks: Known[list[Clock]]) -> Fact:
    if clocks.value is None:
        return Fact(None, clocks.reason)
    governor = clocks.value[0].governor
    highest_mhz = max(clock.highest_mhz for clock in clocks.value)
    return Fact(f"up to {highest_mhz:.0f} MHz" + (f", {governor}" if governor else ""))


def _gpu_clock(clocks: Known[list[Clock]]) -> Fact:
    if clocks.value is None:
        return Fact(None, clocks.reason)
    clock = clocks.value[0]
    return Fact(f"{clock.now_mhz:.0f} of {clock.highest_mhz:.0f} MHz")


def _version(name: str) -> Fact:
    try:
        return Fact(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Fact(None, "not installed as a package")
