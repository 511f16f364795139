"""Heat, over-current and a GPU that is held back: told where the files show them, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.power.machine import Machine
from tests.unit.power.machines import THERMAL, put, tx2

I2C = "sys/bus/i2c/devices"


# Heat.


def test_a_zone_is_told_with_the_highest_trip_point_that_it_has_reached(tmp_path: Path) -> None:
    machine = Machine(tx2(tmp_path))
    zone = f"{THERMAL}/thermal_zone0"
    for celsius, expected in (
        ("95400", []),
        ("95500", ["BCPU-therm is at 96 °C, its passive trip point is 96"]),
        ("101500", ["BCPU-therm is at 102 °C, its critical trip point is 101"]),
    ):
        put(tmp_path, {f"{zone}/temp": f"{celsius}\n"})
        assert machine.facts().slowed == expected


def test_the_trip_point_of_a_fan_or_one_that_is_not_set_is_no_heat(tmp_path: Path) -> None:
    zone = f"{THERMAL}/thermal_zone0"
    sysfs = tx2(tmp_path)
    put(tmp_path, {f"{zone}/trip_point_0_type": "active\n", f"{zone}/trip_point_0_temp": "40000\n"})
    put(tmp_path, {f"{zone}/trip_point_1_type": "hot\n", f"{zone}/trip_point_1_temp": "0\n"})
    assert Machine(sysfs).facts().slowed == []


def test_zones_that_are_off_empty_or_named_alike_are_told_apart(tmp_path: Path) -> None:
    zones = {"0": "41500", "1": "-256000", "2": "", "3": "39000", "4": "warm"}
    kinds = {"0": "cpu-thermal", "1": "cv0-thermal", "2": "cv1-thermal", "3": "cpu-thermal", "4": "x-thermal"}
    put(tmp_path, {f"{THERMAL}/thermal_zone{number}/temp": text for number, text in zones.items()})
    put(tmp_path, {f"{THERMAL}/thermal_zone{number}/type": text for number, text in kinds.items()})
    assert Machine(tmp_path / "sys").facts().zones_c == {
        "cpu-thermal (thermal_zone0)": 41.5,
        "cpu-thermal (thermal_zone3)": 39.0,
    }


@pytest.mark.parametrize(
    ("kind", "slows"),
    [
        ("gpu-throttle-alert", True),
        ("thermal-cpufreq-0", True),
        ("tegra-heavy", True),
        ("Processor", True),
        ("pwm-fan", False),
    ],
)
def test_a_raised_cooling_device_is_told_where_it_slows_something(tmp_path: Path, kind: str, slows: bool) -> None:
    device = f"{THERMAL}/cooling_device7"
    put(tmp_path, {f"{device}/type": f"{kind}\n", f"{device}/cur_state": "2\n", f"{device}/max_state": "9\n"})
    expected = [f"Linux slows {kind} down to cool it: step 2 of 9"] if slows else []
    assert Machine(tmp_path / "sys").facts().slowed == expected


# Over-current.


def test_the_counters_of_orin_have_another_name(tmp_path: Path) -> None:
    hwmon = "sys/class/hwmon/hwmon3"
    files = {"name": "soctherm_oc", "oc1_event_cnt": "0", "oc3_event_cnt": "27390", "oc3_throt_en": "1"}
    put(tmp_path, {f"{hwmon}/{name}": f"{text}\n" for name, text in files.items()})
    assert Machine(tmp_path / "sys").facts().alarms == {"OC1": 0, "OC3": 27390}


def test_the_alarms_of_the_mainline_driver_are_told_by_their_rails(tmp_path: Path) -> None:
    hwmon = f"{I2C}/1-0040/hwmon/hwmon4"
    files = {"in1_label": "VDD_IN", "curr1_crit_alarm": "0", "curr1_max_alarm": "1", "curr2_crit_alarm": "1"}
    put(
        tmp_path, {f"{I2C}/1-0040/name": "ina3221\n"} | {f"{hwmon}/{name}": f"{text}\n" for name, text in files.items()}
    )
    assert Machine(tmp_path / "sys").facts().slowed == [
        "VDD_IN is past its warning current limit",
        "channel 2 is past its critical current limit",
    ]
