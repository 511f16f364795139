"""Heat: temperatures by zone, the trip points that were reached, and what Linux slows down for it."""

from __future__ import annotations

import re
from pathlib import Path

from jetsel.power import sysfs

TRIPS = ("passive", "hot", "critical")
"""Kinds of trip points at which Linux slows down or stops (kernel documentation, thermal/sysfs-api)."""

COLDEST_C = -200.0  # NVIDIA's firmware says -256 °C for a part that is switched off

SLOWING = re.compile(
    r"-throttle-alert$"  # L4T 32 and later: cpu-, gpu-, soc0-, cv0-; not hot-surface-alert, which slows nothing
    r"|^(thermal-)?(cpufreq|devfreq)-"  # mainline, and L4T 35 and later
    r"|-(balanced|heavy)$|^(light|heavy)$"  # Tegra's hardware throttling: cpu-balanced, tegra-heavy
    r"|^Processor$"  # ACPI
)
"""Cooling devices that make something slower; fans and the light of a screen are cooling devices too."""


def zones_c(root: Path) -> dict[str, float]:
    """Return the temperature of each zone that tells, by its type; by `type (thermal_zone3)` where two have the same.

    root: of sysfs, here and below.
    """
    zones = _folders(root, "thermal_zone")
    kinds = [_kind(zone) for zone in zones]
    read = {
        kind if kinds.count(kind) == 1 else f"{kind} ({zone.name})": sysfs.number(zone / "temp")
        for zone, kind in zip(zones, kinds, strict=True)
    }
    return {name: milli / 1e3 for name, milli in read.items() if milli is not None and milli > COLDEST_C * 1e3}


def hot(root: Path) -> list[str]:
    """Name the zones that have reached a trip point, each with the highest that it has reached."""
    return [told for zone in _folders(root, "thermal_zone") if (told := _tripped(zone)) is not None]


def cooled(root: Path) -> list[str]:
    """Name what Linux slows down: the cooling devices of that kind whose state it has raised."""
    return [
        f"{_kind(device)} is cooled: step {state} of {sysfs.text(device / 'max_state') or 'unknown'}"
        for device in _folders(root, "cooling_device")
        if (state := sysfs.number(device / "cur_state") or 0) > 0 and SLOWING.search(_kind(device))
    ]


def _folders(root: Path, beginning: str) -> list[Path]:
    thermal = root / "class/thermal"
    return [thermal / name for name in sysfs.names(thermal) if name.startswith(beginning)]


def _kind(folder: Path) -> str:
    return sysfs.text(folder / "type") or folder.name


def _tripped(zone: Path) -> str | None:
    temperature = sysfs.number(zone / "temp")
    reached = []
    for file in sorted(zone.glob("trip_point_*_type")):
        kind, trip = sysfs.text(file), sysfs.number(f"{file}".removesuffix("_type") + "_temp")
        # 0 or less: a trip point that is not set
        if kind in TRIPS and temperature is not None and trip is not None and temperature >= trip > 0:
            reached.append((trip, kind))
    if temperature is None or not reached:
        return None
    trip, kind = max(reached)
    return f"{_kind(zone)} is at {temperature / 1e3:.0f} °C, its {kind} trip point is {trip / 1e3:.0f}"
