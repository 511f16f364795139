"""What the files of Linux and of L4T say of the board: its name, release, power mode and batteries."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

from jetsel.power import sysfs
from jetsel.power.machine.facts import Battery, Fact, Known
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


def battery(root: Path) -> Known[Battery]:
    """Return the state of the batteries that the board runs from. root: of sysfs.

    `capacity` is 0 to 100, and `status` says Unknown where the driver does not know (kernel documentation,
    ABI/testing/sysfs-class-power). What has the `scope` Device feeds a mouse or a keyboard, and not the board
    (drivers/power/supply/power_supply_sysfs.c).
    """
    folder = root / "class/power_supply"
    found = [folder / name for name in sysfs.names(folder) if _feeds_the_board(folder / name)]
    if not found:
        return Known(None, "no class/power_supply of type Battery")
    known = {one: percent for one in found if (percent := sysfs.number(one / "capacity")) is not None}
    if not known:
        return Known(None, f"{found[0].name} tells no capacity")
    states = {sysfs.text(one / "status") for one in known}
    is_discharging = True if "Discharging" in states else None if states & {"", "Unknown"} else False
    return Known(Battery(fmean(known.values()), is_discharging))


def _feeds_the_board(supply: Path) -> bool:
    is_battery = sysfs.text(supply / "type") == "Battery" and sysfs.text(supply / "scope") != "Device"
    return is_battery and sysfs.text(supply / "present") != "0"
