"""What `jetsel calibrate` keeps of the board beside the calibration, and when it keeps nothing."""

from __future__ import annotations

from pathlib import Path

from jetsel.calibrate.record.conditions import gather
from jetsel.cli.calibrate import machine_of
from jetsel.config import Power
from jetsel.power.machine import Machine, kept
from tests.unit.power.machines import tx2


def test_the_board_is_kept_where_times_were_measured_on_it_as_it_is_now(tmp_path: Path) -> None:
    power = Power(sysfs=str(tx2(tmp_path)))
    measured = gather({}, power.sysfs).described()
    facts = Machine(power.sysfs).facts()
    assert facts.power_mode.value is not None
    assert machine_of(power, measured) == kept(facts)


def test_nothing_is_kept_where_times_come_from_another_board_or_power_mode(tmp_path: Path) -> None:
    power = Power(sysfs=str(tx2(tmp_path)))
    measured = gather({}, power.sysfs).described()
    assert machine_of(power, {}) == {}
    for what in ("board", "power mode", "CPU clock"):
        assert machine_of(power, measured | {what: "another"}) == {}
