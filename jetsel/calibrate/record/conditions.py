"""Under which conditions a recording was made: board, power mode, clocks, libraries, models, load."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from jetsel import __version__

LIBRARIES = ("numpy", "opencv-python-headless", "onnxruntime")
GPU_NAMES = ("gm20b", "gp10b", "gv11b", "ga10b", "gpu")
"""How a Jetson's devfreq device of the GPU ends: Nano, TX2, Xavier, Orin; `17000000.gpu` and `57000000.gpu` too."""


class Fact(Struct, frozen=True):
    """Something about the machine: what was read, or None and the reason."""

    value: str | None
    reason: str | None = None

    def __str__(self) -> str:
        return self.value if self.value is not None else f"unknown ({self.reason})"


class Conditions(Struct, frozen=True, kw_only=True):
    """One run's conditions at its start. versions: library -> version; models: name -> sha256; load: 1, 5, 15 min."""

    board: Fact
    power_mode: Fact
    cpu_clock: Fact
    gpu_clock: Fact
    versions: Mapping[str, Fact]
    models: Mapping[str, str]
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


def gather(models: Mapping[str, str], root: Path = Path("/")) -> Conditions:
    """Read this machine's conditions below `root`. models: name -> sha256 of what will run."""
    versions = {"python": Fact(platform.python_version()), "jetsel": Fact(__version__)}
    return Conditions(
        board=_board(root),
        power_mode=_power_mode(root),
        cpu_clock=_cpu_clock(root),
        gpu_clock=_gpu_clock(root),
        versions=versions | {name: _version(name) for name in LIBRARIES},
        models=dict(models),
        load=os.getloadavg(),
        started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def read_text(path: Path) -> str | None:
    """Return the file's text without blanks and zero bytes at its ends, None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0 \n\t") or None
    except OSError:  # a sensor may also vanish between two reads
        return None


def read_number(path: Path) -> int | None:
    """Return the file's whole number, None where there is none."""
    text = read_text(path)
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def cpu_clocks(root: Path) -> list[tuple[int, int]]:
    """Return (now, highest allowed) of each core that tells, in kHz."""
    folders = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq"))
    return _pairs([(folder / "scaling_cur_freq", folder / "scaling_max_freq") for folder in folders])


def gpu_clocks(root: Path) -> list[tuple[int, int]]:
    """Return (now, highest allowed) of each GPU that tells, in Hz."""
    folders = [f for f in sorted((root / "sys/class/devfreq").glob("*")) if f.name.endswith(GPU_NAMES)]
    return _pairs([(folder / "cur_freq", folder / "max_freq") for folder in folders])


def _pairs(paths: Sequence[tuple[Path, Path]]) -> list[tuple[int, int]]:
    read = [(read_number(now), read_number(highest)) for now, highest in paths]
    return [(now, highest) for now, highest in read if now is not None and highest]


def _board(root: Path) -> Fact:
    """The device tree's name (every Jetson), else the maker's (DMI), with the processor's where it is known."""
    tree = read_text(root / "proc/device-tree/model")
    if tree is not None:
        return Fact(tree)
    dmi = [read_text(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")]
    cpuinfo = read_text(root / "proc/cpuinfo") or ""
    processor = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    cores = len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE))
    known = [name for name in dmi if name]
    if processor:
        known.append(f"{processor[1].strip()}, {cores} cores")
    return Fact(" ".join(known)) if known else Fact(None, "no device tree, DMI or processor name")


def _power_mode(root: Path) -> Fact:
    """Read what nvpmodel keeps: its mode's number in a status file and the names in its configuration."""
    status = re.search(r"pmode:\s*(\d+)", read_text(root / "var/lib/nvpmodel/status") or "")
    if status is None:
        return Fact(None, "no nvpmodel status")
    number = int(status[1])
    named = re.search(rf"POWER_MODEL\s+ID={number}\s+NAME=(\S+)", read_text(root / "etc/nvpmodel.conf") or "")
    return Fact(f"{number} {named[1]}" if named else str(number))


def _cpu_clock(root: Path) -> Fact:
    clocks = cpu_clocks(root)
    governor = read_text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if not clocks:
        return Fact(None, "no cpufreq")
    return Fact(f"up to {max(highest for _, highest in clocks) / 1e3:.0f} MHz" + (f", {governor}" if governor else ""))


def _gpu_clock(root: Path) -> Fact:
    clocks = gpu_clocks(root)
    return Fact(f"{clocks[0][0] / 1e6:.0f} of {clocks[0][1] / 1e6:.0f} MHz") if clocks else Fact(None, "no devfreq GPU")


def _version(name: str) -> Fact:
    try:
        return Fact(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Fact(None, "not installed as a package")
