"""Heat: temperatures by zone, the trip points that were reached, and what Linux slows down for it."""

from __future__ import annotations

import re
from pathlib import Path

from jetsel.power.machine.facts import Known
from jetsel.power.machine.files import names, read, read_number, read_text

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


class Heat:
    """Reads them anew at each call; which trip points a zone has is looked up once."""

    def __init__(self, sysfs: Path) -> None:
        """sysfs: its root."""
        self._folder = str(sysfs / "class/thermal")
        self._trips: dict[str, list[tuple[str, str]]] = {}  # of each zone: (kind, path of its temperature)

    def temperatures_c(self) -> Known[dict[str, Known[float]]]:
        """Return the temperature of each zone by its type; by `type (thermal_zone3)` where two have the same."""
        zones = self._zones()
        kinds = [read_text(f"{self._folder}/{zone}/type") or zone for zone in zones]
        found = {
            kind if kinds.count(kind) == 1 else f"{kind} ({zone})": _temperature(f"{self._folder}/{zone}/temp")
            for zone, kind in zip(zones, kinds, strict=True)
        }
        return Known(found) if found else Known(None, "no thermal zones")

    def hot(self) -> Known[list[str]]:
        """Name the zones that have reached a trip point, each with the highest that it has reached."""
        zones = self._zones()
        found = [sentence for zone in zones if (sentence := self._tripped(zone)) is not None]
        return Known(found) if zones else Known(None, "no thermal zones")

    def cooled(self) -> Known[list[str]]:
        """Name what Linux slows down: the cooling devices of that kind whose state it has raised."""
        devices = [name for name in names(self._folder) if name.startswith("cooling_device")]
        found = []
        for name in devices:
            folder = f"{self._folder}/{name}"
            state = read_number(f"{folder}/cur_state")
            kind = read_text(f"{folder}/type") or ""
            if state is not None and state > 0 and SLOWING.search(kind):
                found.append(f"{kind} is cooled: step {state} of {read_text(f'{folder}/max_state') or 'unknown'}")
        return Known(found) if devices else Known(None, "no cooling devices")

    def _zones(self) -> list[str]:
        return [name for name in names(self._folder) if name.startswith("thermal_zone")]

    def _tripped(self, zone: str) -> str | None:
        folder = f"{self._folder}/{zone}"
        temperature = read_number(f"{folder}/temp")
        if temperature is None:
            return None
        reached = []
        for kind, path in self._trips_of(zone):
            trip = read_number(path)
            if trip is not None and temperature >= trip > 0:  # 0 or less: a trip point that is not set
                reached.append((trip, kind))
        if not reached:
            return None
        trip, kind = max(reached)
        name = read_text(f"{folder}/type") or zone
        return f"{name} is at {temperature / 1e3:.0f} °C, its {kind} trip point is {trip / 1e3:.0f}"

    def _trips_of(self, zone: str) -> list[tuple[str, str]]:
        if zone not in self._trips:
            folder = f"{self._folder}/{zone}"
            kinds = [name for name in names(folder) if name.startswith("trip_point_") and name.endswith("_type")]
            read_kinds = [(read_text(f"{folder}/{name}") or "", name) for name in kinds]
            self._trips[zone] = [
                (kind, f"{folder}/{name.removesuffix('_type')}_temp") for kind, name in read_kinds if kind in TRIPS
            ]
        return self._trips[zone]


def _temperature(path: str) -> Known[float]:
    """Read one zone in °C; the kernel tells thousandths."""
    try:
        text = read(path)
    except OSError as error:  # EAGAIN: the part is switched off
        return Known(None, error.strerror)
    try:
        celsius = int(text) / 1e3
    except ValueError:
        return Known(None, "an empty file" if not text else f"no number: {text[:40]!r}")
    return Known(celsius) if celsius > COLDEST_C else Known(None, f"switched off: it says {celsius:.0f} °C")
