"""Sensors: an INA3221 by both of its drivers, an INA238, and the counters of RAPL."""

import os
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from jetsel.power.sensors import ina3221, monitor, rapl
from jetsel.power.sensors.rail import RailError, RailReading
from tests.data.sysfs_trees import tree
from tests.unit.power.machines import ALWAYS_EIO, Channel, hwmon, iio, moving, replace, zone

IN = Channel("VDD_IN", 5000, 800, 5000)
SOC = Channel("VDD_SOC", 5000, 200, 5000)


@pytest.mark.parametrize(
    ("board", "sensor", "where", "reading", "resolution_w"),
    [
        # JetPack 4 counts channels from 0; of 19,072 mV x 160 mA = 3,051.52 mW its driver gives whole ones, and the
        # shunt is in the device tree.
        ("jetson-tx2", ina3221, "0-0041/0 in ", RailReading(3.051, 19.072, 0.16), 19.072 * 0.008 + 0.16 * 0.008),
        # hwmon counts channels from 1, and power is mV x mA; of 5 mOhm one bit is 8 mA.
        ("jetson-orin-nano", ina3221, "1-0040/1 in ", RailReading(4.321088, 5.048, 0.856), None),
        # 19,087 mV x 1,498 mA, in microwatts; 20 uV over 10 mOhm are 2 mA, and a bit of voltage is 3.125 mV.
        ("jetson-agx-thor", monitor, "", RailReading(28.592326, 19.087, 1.498), 19.087 * 0.002 + 1.498 * 0.003125),
    ],
)
def test_the_input_of_a_board_has_its_power_voltage_current_and_resolution(
    board: str, sensor: ModuleType, where: str, reading: RailReading, resolution_w: float | None
) -> None:
    detected = sensor.detect(tree(board), {})
    assert detected.dropped == ()
    (rail,) = (rail for rail in detected.rails if rail.name in ("VDD_IN", "VIN"))
    assert rail.read_uw() == round(reading.watts * 1e6)
    assert rail.measure() == reading
    assert rail.where.startswith(where)
    if resolution_w is not None:
        assert rail.resolution_w == pytest.approx(resolution_w)


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


def test_without_a_shunt_there_is_no_resolution() -> None:
    assert {rail.resolution_w for rail in ina3221.detect(tree("jetson-nano"), {}).rails} == {None}


@pytest.mark.parametrize(
    ("readings", "power_uw", "counted_uj"),
    [
        ([(10, 5_000)], None, 0),
        ([(10, 5_000), (30, 305_000)], 15_000_000, 300_000),  # 300 mJ in 20 ms
        ([(0, 0), (10, 100_000), (15, 100_000)], 10_000_000, 100_000),  # what did not move repeats its power
        ([(0, 0), (10, 100_000), (15, 100_000), (20, 150_000)], 5_000_000, 150_000),  # 50 mJ since 10 ms, not since 15
        ([(0, 990_000), (10, 40_000)], 5_000_000, 50_000),  # 10 mJ to the end of its range, and 40 after it
        ([(0, 990_000), (10, 40_000), (20, 60_000)], 2_000_000, 70_000),
    ],
)
def test_power_is_the_energy_between_two_moves_over_the_time_between_them(
    readings: list[tuple[int, int]], power_uw: int | None, counted_uj: int
) -> None:
    counter = rapl.EnergyCounter(range_uj=1_000_000)
    for at_ms, energy_uj in readings:
        counter.update(at_ms * 1_000_000, energy_uj)
    assert (counter.power_uw, counter.counted_uj) == (power_uw, counted_uj)


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
