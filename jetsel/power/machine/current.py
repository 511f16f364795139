"""Over-current: the counters of the board's own alarms, and the limits that its power sensors watch."""

from __future__ import annotations

import re
from pathlib import Path

from jetsel.power.machine.facts import Known
from jetsel.power.machine.files import names, read_number, read_text

CHIP = "soctherm_oc"
_COUNTER = re.compile(r"(oc\d+)_(event|irq)_cnt")
"""NVIDIA's over-current driver: `oc1_irq_cnt` on TX2 and Xavier, `oc1_event_cnt` on Orin and Thor.

On Orin OC1 is low voltage, OC2 the average and OC3 the momentary current (Jetson Linux guide, Orin, "OC throttling").
"""

_SENSORS = re.compile(r"ina3221x?")  # x: NVIDIA's own driver of L4T 32 and before
_ALARM = re.compile(r"curr(\d+)_(crit|max)_alarm")
_LIMIT = re.compile(r"crit_current_limit_(\d+)")  # of the momentary current; the warning is of its mean
_SAID = {"crit": "critical", "max": "warning"}


class Current:
    """Reads them anew at each call; which files there are is looked up again when devices come or go."""

    def __init__(self, sysfs: Path) -> None:
        """sysfs: its root."""
        self._hwmon = str(sysfs / "class/hwmon")
        self._i2c = str(sysfs / "bus/i2c/devices")
        self._seen: tuple[list[str], list[str]] | None = None
        self._counters: dict[str, str] = {}  # path by the alarm's name
        self._alarms: list[tuple[str, str]] = []  # (folder, file) of hwmon
        self._limits: list[tuple[str, str]] = []  # (folder, file) of iio

    def events(self) -> Known[dict[str, int]]:
        """Return how often each alarm has thrown the throttle since the board was started."""
        self._look()
        read = {name: read_number(path) for name, path in self._counters.items()}
        found = {name.upper(): count for name, count in read.items() if count is not None}
        return Known(found) if found else Known(None, f"no counters: no hwmon device is named {CHIP}")

    def alarms(self) -> Known[list[str]]:
        """Name the rails past a limit: by the sensor's alarms (hwmon), or by the current where it has none (iio).

        A current is only read on a board without counters: to read it keeps the sampler from the sensor meanwhile.
        """
        self._look()
        if not self._alarms and not self._limits:
            return Known(None, "no power sensor here has a limit")
        found = [self._alarm(*place) for place in self._alarms] + [self._limit(*place) for place in self._limits]
        return Known([sentence for sentence in found if sentence is not None])

    def _look(self) -> None:
        seen = names(self._hwmon), names(self._i2c)
        if seen == self._seen:
            return
        self._seen = seen
        self._counters, self._alarms, self._limits = {}, [], []
        for folder in (f"{self._hwmon}/{name}" for name in seen[0]):
            if read_text(f"{folder}/name") == CHIP:
                found = [match for name in names(folder) if (match := _COUNTER.fullmatch(name))]
                self._counters |= {match[1]: f"{folder}/{match[0]}" for match in found}
        for device in (f"{self._i2c}/{name}" for name in seen[1]):
            if _SENSORS.fullmatch(read_text(f"{device}/name") or ""):
                for folder in (f"{device}/hwmon/{name}" for name in names(f"{device}/hwmon")):
                    self._alarms += [(folder, name) for name in names(folder) if _ALARM.fullmatch(name)]
                folders = () if self._counters else names(device)
                for folder in (f"{device}/{name}" for name in folders if name.startswith("iio:device")):
                    self._limits += [(folder, name) for name in names(folder) if _LIMIT.fullmatch(name)]

    def _alarm(self, folder: str, name: str) -> str | None:
        match = _ALARM.fullmatch(name)
        if match is None or read_number(f"{folder}/{name}") != 1:
            return None
        label = read_text(f"{folder}/in{match[1]}_label") or f"channel {match[1]}"
        return f"{label} is past its {_SAID[match[2]]} current limit"

    def _limit(self, folder: str, name: str) -> str | None:
        match = _LIMIT.fullmatch(name)
        if match is None:
            return None
        limit_ma = read_number(f"{folder}/{name}")
        if limit_ma is None or limit_ma <= 0:  # not set
            return None
        now_ma = read_number(f"{folder}/in_current{match[1]}_input")
        if now_ma is None or now_ma < limit_ma:
            return None
        label = read_text(f"{folder}/rail_name_{match[1]}") or f"channel {match[1]}"
        return f"{label} takes {now_ma} mA, past its critical current limit of {limit_ma} mA"
