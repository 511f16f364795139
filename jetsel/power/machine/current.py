"""Over-current: the counters of the board's own alarms, and the alarms of its power sensors."""

from __future__ import annotations

import re
from pathlib import Path

from jetsel.power import sysfs
from jetsel.power.sensors.monitor import chips

CHIP = "soctherm_oc"
_COUNTER = re.compile(r"(oc\d+)_(event|irq)_cnt")
"""NVIDIA's over-current driver: `oc1_irq_cnt` on TX2 and Xavier, `oc1_event_cnt` on Orin and Thor.

On Orin OC1 is low voltage, OC2 the average and OC3 the momentary current (Jetson Linux guide, Orin, "OC throttling").
"""

_ALARM = re.compile(r"curr(\d+)_(crit|max)_alarm")
_SAID = {"crit": "critical", "max": "warning"}


def counted(root: Path) -> dict[str, int]:
    """Return how often each alarm has thrown the throttle since the board was started. root: of sysfs."""
    hwmon = root / "class/hwmon"
    return {
        match[1].upper(): sysfs.number(hwmon / device / name) or 0
        for device in sysfs.names(hwmon)
        if sysfs.text(hwmon / device / "name") == CHIP
        for name in sysfs.names(hwmon / device)
        if (match := _COUNTER.fullmatch(name))
    }


def past_limits(root: Path) -> list[str]:
    """Name the rails past a limit, by the alarms of Linux's own driver of the sensor."""
    alarms = [
        (chip.folder, name, match.groups())
        for chip in chips(root, "ina3221")
        for name in sysfs.names(chip.folder)
        if (match := _ALARM.fullmatch(name))
    ]
    return [
        f"{sysfs.text(folder / f'in{channel}_label') or f'channel {channel}'} is past its {_SAID[kind]} current limit"
        for folder, name, (channel, kind) in alarms
        if sysfs.number(folder / name) == 1
    ]
