"""Sensors: an INA3221 by both of its drivers, an INA238, and the counters of RAPL."""

import os
import shutil
from pathlib import Path

import pytest

from jetsel.power.sensors import ina3221, monitor, rapl
from jetsel.power.sensors.rail import RailError, RailReading
from tests.data.sysfs_trees import tree
from tests.unit.power.trees import ALWAYS_EIO, Channel, hwmon, iio, moving, replace, zone

IN = Channel("VDD_IN", 5000, 800, 5000)
SOC = Channel("VDD_SOC", 5000, 200, 5000)


def test_jetpack_4_gives_power_in_milliwatts_with_channels_from_0() -> None:
    detected = ina3221.detect(tree("jetson-tx2"), {})
    assert detected.dropped == ()
    (rail,) = (rail for rail in detected.rails if rail.name == "VDD_IN")
    assert rail.read_uw() == 3_051_000  # 19,072 mV x 160 mA = 3,051.52 mW, of which the driver gives whole ones
    assert rail.measure() == RailReading(watts=3.051, volts=19.072, amps=0.16)
    assert rail.where.startswith("0-0041/0 in ")


def test_hwmon_gives_millivolts_and_milliamperes_with_channels_from_1() -> None:
    detected = ina3221.detect(tree("jetson-orin-nano"), {})
    rail = detected.rails[0]
    assert (rail.name, rail.read_uw()) == ("VDD_IN", 4_321_088)  # 5,048 mV x 856 mA
    assert rail.measure() == RailReading(watts=4.321088, volts=5.048, amps=0.856)
    assert rail.where.startswith("1-0040/1 in ")


def test_a_channel_without_a_label_is_dropped_with_the_setting_that_names_it(tmp_path: Path) -> None:
    folder = hwmon(tmp_path, IN, SOC)
    (folder / "in2_label").unlink()
    detected = ina3221.detect(tmp_path, {})
    assert [rail.name for rail in detected.rails] == ["VDD_IN"]
    (dropped,) = detected.dropped
    assert dropped.name == "1-0040/2"
    assert '[power] labels = { "1-0040/2" = ' in dropped.reason


def test_a_channel_without_a_label_has_its_name_from_the_settings(tmp_path: Path) -> None:
    folder = iio(tmp_path, IN, SOC)
    (folder / "rail_name_1").write_text("\n")
    detected = ina3221.detect(tmp_path, {"1-0040/1": "VDD_MINE"})  # as this driver counts: from 0
    assert [(rail.name, rail.read_uw()) for rail in detected.rails] == [("VDD_IN", 4_000_000), ("VDD_MINE", 1_000_000)]
    assert detected.dropped == ()


@pytest.mark.parametrize("label", ["VDD\x1b[2J", "Spannung \xe4", "x" * 65])
def test_a_label_that_is_no_name_is_dropped(tmp_path: Path, label: str) -> None:
    (hwmon(tmp_path, IN) / "in1_label").write_text(label)
    detected = ina3221.detect(tmp_path, {})
    assert detected.rails == ()
    assert [dropped.name for dropped in detected.dropped] == ["1-0040/1"]


@pytest.mark.parametrize("content", ["", "rubbish\n"])
def test_a_rail_that_says_nothing_or_rubbish_is_dropped_and_the_rest_serve(tmp_path: Path, content: str) -> None:
    (hwmon(tmp_path, IN, SOC) / "curr1_input").write_text(content)
    detected = ina3221.detect(tmp_path, {})
    assert [rail.name for rail in detected.rails] == ["VDD_SOC"]
    (dropped,) = detected.dropped
    assert dropped.name == "VDD_IN"
    assert "curr1_input" in dropped.reason
    assert "not a number" in dropped.reason


def test_a_rail_that_vanishes_says_so_and_serves_again_when_it_is_back(tmp_path: Path) -> None:
    file = iio(tmp_path, IN) / "in_power0_input"
    (rail,) = ina3221.detect(tmp_path, {}).rails
    shutil.move(file, tmp_path / "elsewhere")
    rail.close()  # as after a reading that failed
    with pytest.raises(RailError, match="No such file"):
        rail.read_uw()
    file.symlink_to(ALWAYS_EIO)
    with pytest.raises(RailError, match="Input/output error"):
        rail.read_uw()
    file.unlink()
    file.write_text("4100\n")
    assert rail.read_uw() == 4_100_000


@pytest.mark.parametrize(
    ("channel", "watts"),
    [
        (IN, 0.0464),  # 40 uV over 5 mOhm are 8 mA: 5 V x 8 mA + 0.8 A x 8 mV = 40 mW + 6.4 mW
        (Channel("VDD_IN", 5000, 0, 100_000), 0.005),  # above 40 mOhm the driver's whole milliamperes are the step
    ],
)
def test_the_resolution_is_a_bit_of_current_at_the_voltage_and_a_bit_of_voltage_at_the_current(
    tmp_path: Path, channel: Channel, watts: float
) -> None:
    hwmon(tmp_path, channel)
    (rail,) = ina3221.detect(tmp_path, {}).rails
    assert rail.resolution_w == pytest.approx(watts)


def test_the_shunt_of_jetpack_4_is_in_the_device_tree_and_without_one_there_is_no_resolution() -> None:
    (rail,) = (rail for rail in ina3221.detect(tree("jetson-tx2"), {}).rails if rail.name == "VDD_IN")
    assert rail.resolution_w == pytest.approx(19.072 * 0.008 + 0.16 * 0.008)
    assert {rail.resolution_w for rail in ina3221.detect(tree("jetson-nano"), {}).rails} == {None}


def test_power_is_the_driver_s_own_in_microwatts() -> None:
    (rail,) = monitor.detect(tree("jetson-agx-thor"), {}).rails
    assert (rail.name, rail.read_uw()) == ("VIN", 28_592_326)  # 19,087 mV x 1,498 mA
    assert rail.measure() == RailReading(watts=28.592326, volts=19.087, amps=1.498)


def test_the_resolution_is_by_the_data_sheet_and_the_driver_s_calibration() -> None:
    (rail,) = monitor.detect(tree("jetson-agx-thor"), {}).rails
    # 20 uV over 10 mOhm are 2 mA, and a bit of voltage is 3.125 mV
    assert rail.resolution_w == pytest.approx(19.087 * 0.002 + 1.498 * 0.003125)


MS = 1_000_000  # in ns


def test_power_is_the_energy_between_two_moves_over_the_time_between_them() -> None:
    counter = rapl.Counter(range_uj=1_000_000)
    counter.update(10 * MS, 5_000)
    assert counter.power_uw is None
    counter.update(30 * MS, 305_000)  # 300 mJ in 20 ms are 15 W
    assert counter.power_uw == 15_000_000


def test_a_counter_that_did_not_move_repeats_its_power_and_loses_no_time() -> None:
    counter = rapl.Counter(range_uj=1_000_000)
    counter.update(0, 0)
    counter.update(10 * MS, 100_000)
    counter.update(15 * MS, 100_000)
    assert counter.power_uw == 10_000_000
    counter.update(20 * MS, 150_000)  # 50 mJ since 10 ms, not since 15
    assert counter.power_uw == 5_000_000


def test_a_counter_wraps_round_at_its_range() -> None:
    counter = rapl.Counter(range_uj=1_000_000)
    counter.update(0, 990_000)
    counter.update(10 * MS, 40_000)  # 10 mJ to the end and 40 after it
    assert counter.power_uw == 5_000_000
    counter.update(20 * MS, 60_000)
    assert counter.counted_uj == 70_000


def test_packages_and_their_memory_make_the_total_and_their_cores_do_not(tmp_path: Path) -> None:
    counters = [
        zone(tmp_path, "intel-rapl:0", "package-0"),
        zone(tmp_path, "intel-rapl:0:0", "core"),
        zone(tmp_path, "intel-rapl:0:1", "uncore"),
        zone(tmp_path, "intel-rapl:0:2", "dram"),
        zone(tmp_path, "intel-rapl:1", "package-1"),
        zone(tmp_path, "intel-rapl:1:0", "core"),
        zone(tmp_path, "intel-rapl:2", "psys"),
    ]
    zone(tmp_path, "intel-rapl-mmio:0", "package-0")  # a second way to the same
    with moving(*counters):
        detected = rapl.detect(tmp_path)
        assert all(rail.read_uw() > 0 for rail in detected.rails)
        assert all(rail.measure().volts is None for rail in detected.rails[:1])
    assert [rail.name for rail in detected.rails] == [
        "package-0", "package-0/core", "package-0/uncore", "package-0/dram", "package-1", "package-1/core", "psys",
    ]  # fmt: skip
    assert detected.total == ("package-0", "package-0/dram", "package-1")
    assert detected.parts["package-0"] == ("package-0/core", "package-0/uncore")
    assert set(detected.parts["psys"]) == {rail.name for rail in detected.rails} - {"psys"}
    for rail in detected.rails:
        rail.close()


def test_a_counter_that_stands_still_is_not_zero_watts_but_dropped(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0")
    zone(tmp_path, "intel-rapl:1", "psys")
    with moving(package):
        detected = rapl.detect(tmp_path)
    assert [rail.name for rail in detected.rails] == ["package-0"]
    assert [(each.name, "does not move" in each.reason) for each in detected.dropped] == [("psys", True)]
    detected.rails[0].close()


def test_a_counter_of_root_s_alone_is_dropped_with_the_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(zone(tmp_path, "intel-rapl:0", "package-0"), ALWAYS_EIO)
    monkeypatch.setattr(os, "access", lambda *_: False)
    (dropped,) = rapl.detect(tmp_path).dropped
    assert "sudo chmod a+r" in dropped.reason
