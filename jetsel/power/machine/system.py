"""Which board it is, which release of Linux for Tegra, and which power mode is set."""

from __future__ import annotations

import re
from pathlib import Path

from jetsel.power.machine.facts import Fact
from jetsel.power.sysfs import text

_RELEASE = re.compile(r"# R(\d+) \(release\), REVISION: ([\d.]+)")
_MODE = re.compile(r"pmode:\s*(\d+)")


def board(sysfs: Path) -> Fact:
    """The device tree's name (every Jetson), else the maker's (DMI), with the processor's where it is known."""
    root = sysfs.parent
    tree = text(sysfs / "firmware/devicetree/base/model") or text(root / "proc/device-tree/model")
    if tree:
        return Fact(tree)
    known = [name for file in ("sys_vendor", "product_name") if (name := text(sysfs / "class/dmi/id" / file))]
    cpuinfo = text(root / "proc/cpuinfo")
    processor = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    cores = len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE))
    if processor:
        known.append(f"{processor[1].strip()}, {cores} cores")
    return Fact(" ".join(known)) if known else Fact(None, "no device tree, DMI or processor name")


def l4t(root: Path) -> Fact:
    """Read NVIDIA's release file: `# R32 (release), REVISION: 7.1, ...` is 32.7.1. root: what etc and var lie in."""
    said = text(root / "etc/nv_tegra_release")
    found = _RELEASE.match(said)
    if found:
        return Fact(f"{found[1]}.{found[2]}")
    return Fact(None, f"{said[:80]!r} names no release" if said else "no Linux for Tegra: no /etc/nv_tegra_release")


def power_mode(root: Path) -> Fact:
    """Read what nvpmodel keeps: its mode's number in a status file and the names in its configuration."""
    status = _MODE.search(text(root / "var/lib/nvpmodel/status"))
    if status is None:
        return Fact(None, "no nvpmodel status")
    number = int(status[1])
    named = re.search(rf"POWER_MODEL\s+ID={number}\s+NAME=([^\s>]+)", text(root / "etc/nvpmodel.conf"))
    return Fact(f"{number} {named[1]}" if named else str(number))
