"""Which board it is, which release of Linux for Tegra and of JetPack, and which power mode is set."""

from __future__ import annotations

import re
from pathlib import Path

from jetsel.power.machine.facts import Fact
from jetsel.power.sysfs import text

# NVIDIA's Jetson Linux archive (developer.nvidia.com/embedded/jetson-linux-archive) names the JetPack of each release.
JETPACK = {
    "32.1.0": "4.2",
    "32.2.0": "4.2.1",
    "32.2.1": "4.2.2",
    "32.2.3": "4.2.3",
    "32.3.1": "4.3",
    "32.4.2": "4.4 DP",
    "32.4.3": "4.4",
    "32.4.4": "4.4.1",
    "32.5.0": "4.5",
    "32.5.1": "4.5.1",
    "32.6.1": "4.6",
    "32.7.1": "4.6.1",
    "32.7.2": "4.6.2",
    "32.7.3": "4.6.3",
    "32.7.4": "4.6.4",
    "32.7.5": "4.6.5",
    "32.7.6": "4.6.6",
    "34.1.0": "5.0 DP",
    "34.1.1": "5.0.1 DP",
    "35.1.0": "5.0.2",
    "35.2.1": "5.1",
    "35.3.1": "5.1.1",
    "35.4.1": "5.1.2",
    "35.5.0": "5.1.3",
    "35.6.0": "5.1.4",
    "35.6.1": "5.1.5",
    "36.2.0": "6.0 DP",
    "36.3.0": "6.0",
    "36.4.0": "6.1",
    "36.4.3": "6.2",
    "36.4.4": "6.2.1",
    "38.2.0": "7.0",
    "38.4.0": "7.1",
}
"""JetPack by L4T release."""

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


def jetpack(release: Fact) -> Fact:
    """Return the JetPack that this L4T release came with."""
    if release.value is None:
        return release
    known = JETPACK.get(release.value)
    return Fact(known) if known else Fact(None, f"L4T {release.value} is not in the table of releases")


def power_mode(root: Path) -> Fact:
    """Read what nvpmodel keeps: its mode's number in a status file and the names in its configuration."""
    status = _MODE.search(text(root / "var/lib/nvpmodel/status"))
    if status is None:
        return Fact(None, "no nvpmodel status")
    number = int(status[1])
    named = re.search(rf"POWER_MODEL\s+ID={number}\s+NAME=([^\s>]+)", text(root / "etc/nvpmodel.conf"))
    return Fact(f"{number} {named[1]}" if named else str(number))
