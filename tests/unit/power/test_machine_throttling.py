"""Heat, over-current and a GPU that is held back: told where the files show them, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.power.machine import Known, Machine
from tests.unit.power.machines import GPU, THERMAL, put, tx2

I2C = "sys/bus/i2c/devices"
IIO = f"{I2C}/0-0041/iio:device1"


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
        assert machine.hot() == Known(expected)


def test_the_trip_point_of_a_fan_or_one_that_is_not_set_is_no_heat(tmp_path: Path) -> None:
    zone = f"{THERMAL}/thermal_zone0"
    sysfs = tx2(tmp_path)
    put(tmp_path, {f"{zone}/trip_point_0_type": "active\n", f"{zone}/trip_point_0_temp": "40000\n"})
    put(tmp_path, {f"{zone}/trip_point_1_type": "hot\n", f"{zone}/trip_point_1_temp": "0\n"})
    assert Machine(sysfs).hot() == Known([])


def test_zones_that_are_off_empty_or_named_alike_are_told_apart(tmp_path: Path) -> None:
    zones = {"0": "41500", "1": "-256000", "2": "", "3": "39000", "4": "warm"}
    kinds = {"0": "cpu-thermal", "1": "cv0-thermal", "2": "cv1-thermal", "3": "cpu-thermal", "4": "x-thermal"}
    put(tmp_path, {f"{THERMAL}/thermal_zone{number}/temp": text for number, text in zones.items()})
    put(tmp_path, {f"{THERMAL}/thermal_zone{number}/type": text for number, text in kinds.items()})
    assert Machine(tmp_path / "sys").facts().temperatures_c == Known(
        {
            "cpu-thermal (thermal_zone0)": Known(41.5),
            "cv0-thermal": Known(None, "switched off: it says -256 °C"),
            "cv1-thermal": Known(None, "an empty file"),
            "cpu-thermal (thermal_zone3)": Known(39.0),
            "x-thermal": Known(None, "no number: 'warm'"),
        }
    )


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
    expected = [f"{kind} is cooled: step 2 of 9"] if slows else []
    assert Machine(tmp_path / "sys").facts().throttling.cooled == Known(expected)


# Over-current.


def test_the_counters_of_orin_have_another_name(tmp_path: Path) -> None:
    hwmon = "sys/class/hwmon/hwmon3"
    files = {"name": "soctherm_oc", "oc1_event_cnt": "0", "oc3_event_cnt": "27390", "oc3_throt_en": "1"}
    put(tmp_path, {f"{hwmon}/{name}": f"{text}\n" for name, text in files.items()})
    assert Machine(tmp_path / "sys").facts().throttling.events == Known({"OC1": 0, "OC3": 27390})


def without_counters(root: Path) -> Path:
    """The TX2 as an L4T without the driver of the counters shows it."""
    sysfs = tx2(root)
    put(root, {"sys/class/hwmon/hwmon2/name": "other\n"})
    return sysfs


def test_a_rail_of_jetpack_4_past_its_limit_is_told_with_both_currents(tmp_path: Path) -> None:
    machine = Machine(without_counters(tmp_path))
    for current, expected in (
        ("3999", []),
        ("4000", ["VDD_IN takes 4000 mA, past its critical current limit of 4000 mA"]),
    ):
        put(tmp_path, {f"{IIO}/in_current0_input": current})
        assert machine.facts().throttling.over_current == Known(expected)


def test_the_alarms_of_the_mainline_driver_are_told_by_their_rails(tmp_path: Path) -> None:
    hwmon = f"{I2C}/1-0040/hwmon/hwmon4"
    files = {"in1_label": "VDD_IN", "curr1_crit_alarm": "0", "curr1_max_alarm": "1", "curr2_crit_alarm": "1"}
    put(
        tmp_path, {f"{I2C}/1-0040/name": "ina3221\n"} | {f"{hwmon}/{name}": f"{text}\n" for name, text in files.items()}
    )
    assert Machine(tmp_path / "sys").facts().throttling.over_current == Known(
        ["VDD_IN is past its warning current limit", "channel 2 is past its critical current limit"]
    )


# The GPU.


@pytest.mark.parametrize(
    ("load", "now_mhz", "target_mhz", "is_held"),
    [
        ("950", 1000, 1122, True),  # 89 %
        ("950", 1010, 1122, False),  # 90.02 %
        ("300", 500, 1122, False),  # idle: the clock may lag
        ("950", 500, 500, False),  # nobody asked for more
    ],
)
def test_a_gpu_that_is_slower_under_load_than_asked_is_held_back(
    tmp_path: Path, load: str, now_mhz: int, target_mhz: int, is_held: bool
) -> None:
    sysfs = tx2(tmp_path)
    clocks = {"cur_freq": f"{now_mhz}000000", "target_freq": f"{target_mhz}000000", "device/load": load}
    put(tmp_path, {f"{GPU}/{name}": text for name, text in clocks.items()})
    sentence = f"17000000.gp10b runs at {now_mhz} MHz under load, and {target_mhz} MHz were asked for"
    assert Machine(sysfs).facts().throttling.held == Known([sentence] if is_held else [])
