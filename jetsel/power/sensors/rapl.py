"""RAPL, the energy counters of processor packages under Linux's `powercap`, for development machines.

Counters: the kernel's Documentation/power/powercap/powercap.rst. Domains: Intel's Software Developer's Manual, volume
3, "Platform specific power management", RAPL domains.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

from jetsel.power.sensors.rail import Detected, RailError, RailReading, open_rails
from jetsel.power.sysfs import NumberFile, list_names, read_int, read_text

SPAN_S = 0.02  # length of one measurement; the counters move about once a millisecond
PATIENCE_S = 0.5  # longest wait for a counter; some count in whole joules
MEMORY = "dram"  # listed under its package, but not part of it
PLATFORM = "psys"  # contains the packages, if the machine's maker connected it


class EnergyCounter:
    """Follows a counter of microjoules that overflows, and computes the mean power between its last two changes.

    counted_uj: energy since the first reading. power_uw: mean power, None before the first change.
    """

    def __init__(self, range_uj: int) -> None:
        """range_uj: value at which the counter restarts at 0."""
        self.power_uw: int | None = None
        self.counted_uj = 0
        self._range_uj = range_uj
        self._t_ns: int | None = None
        self._energy_uj = 0

    def update(self, t_ns: int, energy_uj: int) -> bool:
        """Record a reading of the counter and its time; return whether it changed."""
        if self._t_ns is None:
            self._t_ns, self._energy_uj = t_ns, energy_uj
            return False
        moved_uj = energy_uj - self._energy_uj
        if moved_uj == 0 or t_ns <= self._t_ns:
            return False  # without a change, the power stays the same
        if moved_uj < 0:
            moved_uj += self._range_uj
        self.counted_uj += moved_uj
        self.power_uw = moved_uj * 1_000_000_000 // (t_ns - self._t_ns)
        self._t_ns, self._energy_uj = t_ns, energy_uj
        return True


class RaplDomain:
    """A Rail that is one RAPL domain: a processor package, a part of it, or the whole platform."""

    def __init__(self, name: str, folder: Path) -> None:
        """Open the counter and check that it changes. Raises RailError if it is unreadable or does not change."""
        self.name = name
        self.where = str(folder)
        self.resolution_w: float | None = None  # the step depends on the time between two readings
        self._energy_uj = NumberFile(folder / "energy_uj")
        self._counter = EnergyCounter(read_int(folder / "max_energy_range_uj") or 0)
        try:
            self.measure()
        except RailError as error:
            self.close()
            raise RailError(f"{error}{_permission_hint(folder)}") from None

    def read_uw(self) -> int:
        """Return the mean power in microwatts between the counter's last two changes. Raises RailError."""
        self._update()
        if self._counter.power_uw is None:
            raise RailError(f"{self.where}: the counter does not move, so this machine does not measure {self.name}")
        return self._counter.power_uw

    def read_uj(self) -> int:
        """Return the microjoules counted since opening. Raises RailError."""
        self._update()
        return self._counter.counted_uj

    def measure(self) -> RailReading:
        """Return the mean power over the next 20 ms, or until the counter changes. Raises RailError."""
        self._update()
        end_s = time.monotonic() + PATIENCE_S
        time.sleep(SPAN_S)
        while not self._update() and time.monotonic() < end_s:
            time.sleep(SPAN_S)
        return RailReading(self.read_uw() / 1e6, None, None)

    def close(self) -> None:
        """Close its file."""
        self._energy_uj.close()

    def _update(self) -> bool:
        """Read the counter; return whether it has changed since the last reading."""
        energy_uj = self._energy_uj.read()
        return self._counter.update(time.monotonic_ns(), energy_uj)


def detect(root: Path) -> Detected:
    """Return every RAPL domain below `root` (of sysfs); the total is the packages and their memory.

    Cores and graphics are parts of their package. The platform's domain contains the packages; it is not the total,
    since many machines leave it unconnected.
    """
    by_folder = _domain_names(root)
    rails, dropped = open_rails((name, partial(RaplDomain, name, folder)) for folder, name in by_folder.items())
    names = tuple(dict.fromkeys(by_folder.values()))
    total = tuple(name for name in names if name != PLATFORM and ("/" not in name or name.endswith(f"/{MEMORY}")))
    parts = {
        whole: tuple(name for name in names if name.startswith(f"{whole}/") and name not in total) for whole in total
    }
    return Detected(rails, dropped, total, parts | {PLATFORM: tuple(name for name in names if name != PLATFORM)})


def _domain_names(root: Path) -> dict[Path, str]:
    """Return folder -> name of each domain: package-0, and package-0/core for a part of a package.

    intel-rapl-mmio, a second interface to the same packages, is left out.
    """
    powercap = root / "class/powercap"
    zones = [zone for zone in list_names(powercap) if "rapl:" in zone and (powercap / zone / "energy_uj").exists()]
    names: dict[str, str] = {}  # by zone: intel-rapl:0, and intel-rapl:0:1 for its part
    for zone in zones:
        label, parent = read_text(powercap / zone / "name") or zone, names.get(zone.rpartition(":")[0])
        names[zone] = label if parent is None else f"{parent}/{label}"
    return {powercap / zone: name for zone, name in names.items()}


def _permission_hint(folder: Path) -> str:
    """Return how to make a domain's counter readable, "" if it is."""
    counter = folder / "energy_uj"
    if os.access(counter, os.R_OK):
        return ""
    return f"; on Linux, only root may read it: sudo chmod a+r {counter}, or run as root"
