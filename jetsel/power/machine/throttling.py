"""Reasons for throttling: temperature, by zones, trip points and cooling devices, and over-current, by alarms."""

from __future__ import annotations

import re
from pathlib import Path

from jetsel.power.sensors.monitor import find_chips
from jetsel.power.sysfs import list_names, read_int, read_text

TRIPS = ("passive", "hot", "critical")
"""Kinds of trip points at which Linux slows down or stops (kernel documentation, thermal/sysfs-api)."""

COLDEST_C = -200.0  # NVIDIA's firmware reports -256 °C for a part that is off

SLOWING = re.compile(
    r"-throttle-alert$"  # L4T 32 and later: cpu-, gpu-, soc0-, cv0-; hot-surface-alert slows nothing
    r"|^(thermal-)?(cpufreq|devfreq)-"  # mainline, and L4T 35 and later
    r"|-(balanced|heavy)$|^(light|heavy)$"  # Tegra's hardware throttling: cpu-balanced, tegra-heavy
    r"|^Processor$"  # ACPI
)
"""Cooling devices that slow something down; fans and screen backlights are cooling devices too."""

OVER_CURRENT = "soctherm_oc"
_COUNTER = re.compile(r"(oc\d+)_(event|irq)_cnt")
"""NVIDIA's over-current driver: `oc1_irq_cnt` on TX2 and Xavier, `oc1_event_cnt` on Orin and Thor.

On Orin OC1 is low voltage, OC2 the average and OC3 the momentary current (Jetson Linux guide, Orin, "OC throttling").
"""

_ALARM = re.compile(r"curr(\d+)_(crit|max)_alarm")
_LIMITS = {"crit": "critical", "max": "warning"}


def zones_c(root: Path) -> dict[str, float]:
    """Return the temperature of each thermal zone in °C, by type, or by `type (thermal_zone3)` if types repeat.

    root: of sysfs, in every function of this file.
    """
    zones = _thermal_folders(root, "thermal_zone")
    types = [_type_of(zone) for zone in zones]
    milli_c = {
        name if types.count(name) == 1 else f"{name} ({zone.name})": read_int(zone / "temp")
        for zone, name in zip(zones, types, strict=True)
    }
    return {name: milli / 1e3 for name, milli in milli_c.items() if milli is not None and milli > COLDEST_C * 1e3}


def slowed(root: Path) -> list[str]:
    """Return why the board is throttled now, a sentence for each reason."""
    return [*hot_zones(root), *_slowed_devices(root), *_rails_past_limits(root)]


def hot_zones(root: Path) -> list[str]:
    """Return a sentence for each thermal zone that has reached a trip point (a temperature at which Linux acts)."""
    return [reason for zone in _thermal_folders(root, "thermal_zone") if (reason := _trip_reason(zone)) is not None]


def _slowed_devices(root: Path) -> list[str]:
    """Return a sentence for each part that Linux slows down: active cooling devices that match SLOWING."""
    return [
        f"Linux slows {_type_of(device)} down to cool it: step {step} of {read_text(device / 'max_state') or 'unknown'}"
        for device in _thermal_folders(root, "cooling_device")
        if (step := read_int(device / "cur_state") or 0) > 0 and SLOWING.search(_type_of(device))
    ]


def alarms(root: Path) -> dict[str, int]:
    """Return how often each over-current alarm, such as OC1, was raised since the board started."""
    hwmon = root / "class/hwmon"
    return {
        match[1].upper(): read_int(hwmon / device / name) or 0
        for device in list_names(hwmon)
        if read_text(hwmon / device / "name") == OVER_CURRENT
        for name in list_names(hwmon / device)
        if (match := _COUNTER.fullmatch(name))
    }


def _rails_past_limits(root: Path) -> list[str]:
    """Return a sentence for each rail above a limit, by the alarms of Linux's sensor driver."""
    alarms = [
        (chip.folder, name, match.groups())
        for chip in find_chips(root, "ina3221")
        for name in list_names(chip.folder)
        if (match := _ALARM.fullmatch(name))
    ]
    return [
        f"{read_text(folder / f'in{channel}_label') or f'channel {channel}'} is past its {_LIMITS[kind]} current limit"
        for folder, name, (channel, kind) in alarms
        if read_int(folder / name) == 1
    ]


def _thermal_folders(root: Path, prefix: str) -> list[Path]:
    thermal = root / "class/thermal"
    return [thermal / name for name in list_names(thermal) if name.startswith(prefix)]


def _type_of(folder: Path) -> str:
    """Return the type of a thermal zone or cooling device, such as `GPU-therm`; its number if it has none."""
    return read_text(folder / "type") or folder.name


def _trip_reason(zone: Path) -> str | None:
    """Return a sentence with the highest trip point that a zone has reached, None if it has reached none."""
    temperature = read_int(zone / "temp")
    reached = []
    for file in sorted(zone.glob("trip_point_*_type")):
        kind, trip = read_text(file), read_int(f"{file}".removesuffix("_type") + "_temp")
        # 0 or less means that the trip point is not set
        if kind in TRIPS and temperature is not None and trip is not None and temperature >= trip > 0:
            reached.append((trip, kind))
    if temperature is None or not reached:
        return None
    trip, kind = max(reached)
    return f"{_type_of(zone)} is at {temperature / 1e3:.0f} °C, its {kind} trip point is {trip / 1e3:.0f}"
