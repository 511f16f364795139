"""What the batteries of a board say: how much is left, and whether they are being emptied."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from jetsel.power import sysfs
from jetsel.power.machine.facts import Battery, Known


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
