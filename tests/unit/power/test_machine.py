"""What a board's files say of it, as numbers worked by hand; what they do not say is None with a reason."""

from pathlib import Path

import msgspec
import pytest

from jetsel.power.machine import BoardFacts, ClockReading, Fact, Known, Machine, differences, throttled
from jetsel.power.machine.machine import JTOP_OFF
from tests.unit.power.machines import CPUS, GPU, THERMAL, put, tx2

CPU_CLOCK = ClockReading(name="cpu0", now_mhz=345.6, lowest_mhz=345.6, highest_mhz=2035.2, governor="schedutil")
GPU_CLOCK = ClockReading(
    name="17000000.gp10b",
    now_mhz=1122.0,
    lowest_mhz=114.75,
    highest_mhz=1122.0,
    governor="nvhost_podgov",
)


def test_a_tx2_says_what_it_is_and_how_it_is_set(tmp_path: Path) -> None:
    found = Machine(tx2(tmp_path)).facts()
    assert found.board == Fact("quill")
    assert found.l4t == Fact("32.7.1")
    assert found.power_mode == Fact("3 MAXP_CORE_ARM")
    assert found.cores == Fact("0,3-5")
    assert found.cpu_clocks == Known([CPU_CLOCK])
    assert found.gpu_clocks == Known([GPU_CLOCK])
    assert found.gpu_load == Known(0.95)
    assert found.zones_c == {"BCPU-therm": 41.5}
    assert found.jtop == Fact(None, JTOP_OFF)


def test_a_machine_that_tells_nothing_gives_a_reason_for_each(tmp_path: Path) -> None:
    found = Machine(tmp_path / "sys").facts()
    for known in (found.board, found.l4t, found.jetpack, found.power_mode, found.jetson_clocks, found.cores):
        assert (known.value, bool(known.reason)) == (None, True)
    for known in (found.cpu_clocks, found.gpu_clocks, found.gpu_load):
        assert (known.value, bool(known.reason)) == (None, True)
    assert (found.zones_c, found.slowed, found.alarms) == ({}, [], {})


@pytest.mark.parametrize(
    ("text", "l4t"), [("# R36 (release), REVISION: 4.3, GCID: 1\n", "36.4.3"), ("something else\n", None)]
)
def test_the_release_file_names_l4t(tmp_path: Path, text: str, l4t: str | None) -> None:
    found = Machine(put(tmp_path, {"etc/nv_tegra_release": text}) / "sys").facts().l4t
    assert (found.value, found.reason is None) == (l4t, l4t is not None)


# The battery.

BAT, SECOND = "sys/class/power_supply/BAT0", "sys/class/power_supply/BAT1"
FULL = {f"{BAT}/type": "Battery\n", f"{BAT}/capacity": "100\n"}
OTHER = {f"{SECOND}/type": "Battery", f"{SECOND}/capacity": "20"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 100.0),
        (OTHER, 60.0),
        (OTHER | {f"{SECOND}/type": "Mains"}, 100.0),
        (OTHER | {f"{SECOND}/scope": "Device"}, 100.0),
        ({f"{BAT}/capacity": "\n"}, None),
        ({f"{BAT}/present": "0\n"}, None),
    ],
    ids=["full", "two", "mains", "mouse", "no-capacity", "absent"],
)
def test_what_the_board_s_batteries_say(tmp_path: Path, files: dict[str, str], expected: float | None) -> None:
    assert Machine(put(tmp_path, FULL | files) / "sys").facts().battery_percent == expected


# jetson_clocks.


def test_jetson_clocks_is_inferred_only_where_cpu_and_gpu_are_both_pinned(tmp_path: Path) -> None:
    machine = Machine(tx2(tmp_path))
    put(tmp_path, {f"{CPUS}/cpufreq/policy0/scaling_min_freq": "2035200\n"})
    assert machine.facts().jetson_clocks.value is False
    put(tmp_path, {f"{GPU}/min_freq": "1122000000\n"})
    assert machine.facts().jetson_clocks == Known(True)


def test_a_clock_that_does_not_tell_its_lowest_leaves_jetson_clocks_unknown(tmp_path: Path) -> None:
    sysfs = tx2(tmp_path)
    (tmp_path / GPU / "min_freq").unlink()
    found = Machine(sysfs).facts().jetson_clocks
    assert (found.value, bool(found.reason)) == (None, True)


def test_files_that_vanish_or_hold_nothing_leave_what_else_there_is(tmp_path: Path) -> None:
    machine = Machine(tx2(tmp_path))
    put(tmp_path, {f"{GPU}/cur_freq": ""})
    (tmp_path / GPU / "device/load").unlink()
    found = machine.facts()
    assert found.gpu_clocks == Known(None, "no devfreq GPU")
    assert found.gpu_load == Known(None, "no load file of a GPU")
    assert found.cpu_clocks == Known([CPU_CLOCK])


@pytest.mark.parametrize("path", ["devices/gpu.0/load", "devices/platform/gpu.0/load"])
def test_the_load_of_the_gpu_is_found_where_l4t_links_to_it(tmp_path: Path, path: str) -> None:
    assert Machine(put(tmp_path, {f"sys/{path}": "256\n"}) / "sys").facts().gpu_load == Known(0.256)


@pytest.mark.parametrize("name", ["57000000.gpu", "17000000.ga10b", "gpu-gpc-0"])
def test_the_gpu_of_each_board_is_told_from_other_devices(tmp_path: Path, name: str) -> None:
    devfreq = "sys/class/devfreq"
    others = ["13e10000.host1x", "gpu-nvd-0"]
    for device in (name, *others):
        put(tmp_path, {f"{devfreq}/{device}/cur_freq": "600000000", f"{devfreq}/{device}/max_freq": "1200000000"})
    (clock,) = Machine(tmp_path / "sys").facts().gpu_clocks.value or ()
    assert (clock.name, clock.share) == (name, 0.5)


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


MODE = "var/lib/nvpmodel/status"


def after(root: Path, files: dict[str, str]) -> tuple[BoardFacts, BoardFacts]:
    """The facts of a TX2 before and after these files were written; those before came through JSON."""
    machine = Machine(tx2(root))
    before = msgspec.json.decode(msgspec.json.encode(machine.facts()), type=BoardFacts)
    put(root, files)
    return before, machine.facts()


def test_a_board_that_stays_as_it_was_gives_no_reason(tmp_path: Path) -> None:
    cooler = {f"{THERMAL}/thermal_zone0/temp": "30000", f"{CPUS}/cpufreq/policy0/scaling_cur_freq": "2035200"}
    before, now = after(tmp_path, cooler | {f"{GPU}/device/load": "0", f"{GPU}/cur_freq": "114750000"})
    assert differences(before, now) == throttled(before, now) == []


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({MODE: "pmode:0000"}, "power mode changed from '3 MAXP_CORE_ARM' to '0 MAXN'"),
        ({f"{CPUS}/online": "0"}, "running CPU cores changed from '0,3-5' to '0'"),
        (
            {f"{CPUS}/cpufreq/policy0/scaling_max_freq": "1400000"},
            "highest allowed clock of cpu0 changed from 2035 to 1400 MHz",
        ),
        ({f"{GPU}/max_freq": "854250000"}, "highest allowed clock of 17000000.gp10b changed from 1122 to 854 MHz"),
        (
            {f"{CPUS}/cpufreq/policy0/scaling_min_freq": "2035200", f"{GPU}/min_freq": "1122000000"},
            "jetson_clocks changed from False to True",
        ),
    ],
)
def test_a_board_that_is_set_otherwise_is_a_reason(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    before, now = after(tmp_path, files)
    assert differences(before, now) == [reason]
    assert throttled(before, now) == []


def test_heat_and_alarms_that_were_counted_since_are_throttling(tmp_path: Path) -> None:
    alarms = {"sys/class/hwmon/hwmon2/oc1_irq_cnt": "7"}
    before, now = after(tmp_path, alarms | {f"{THERMAL}/cooling_device0/cur_state": "1"})
    assert throttled(before, now) == [
        "Linux slows bcpu-throttle-alert down to cool it: step 1 of 1",
        "OC1, an over-current or low-voltage alarm, was raised 3 more times",
    ]
    assert differences(before, now) == []


def test_what_is_not_known_any_more_is_no_reason(tmp_path: Path) -> None:
    assert differences(*after(tmp_path, {MODE: "", f"{CPUS}/online": "", f"{GPU}/max_freq": ""})) == []
