"""What a board's files say of it, as numbers worked by hand; what they do not say is None with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.power.machine import Battery, ClockReading, Fact, Known, Machine
from jetsel.power.machine.machine import NOT_ASKED
from tests.unit.power.machines import CPUS, GPU, put, tx2

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
    assert found.jtop == Fact(None, NOT_ASKED)


def test_a_machine_that_tells_nothing_gives_a_reason_for_each(tmp_path: Path) -> None:
    found = Machine(tmp_path / "sys").facts()
    for known in (found.board, found.l4t, found.jetpack, found.power_mode, found.jetson_clocks, found.cores):
        assert (known.value, bool(known.reason)) == (None, True)
    for known in (found.cpu_clocks, found.gpu_clocks, found.gpu_load, found.battery):
        assert (known.value, bool(known.reason)) == (None, True)
    assert (found.zones_c, found.slowed, found.alarms) == ({}, [], {})


@pytest.mark.parametrize(
    ("text", "l4t"), [("# R36 (release), REVISION: 4.3, GCID: 1\n", "36.4.3"), ("something else\n", None)]
)
def test_the_release_file_names_l4t(tmp_path: Path, text: str, l4t: str | None) -> None:
    found = Machine(put(tmp_path, {"etc/nv_tegra_release": text}) / "sys").facts().l4t
    assert (found.value, found.reason is None) == (l4t, l4t is not None)


# The battery.

SUPPLY = "sys/class/power_supply"
FULL = {f"{SUPPLY}/BAT0/type": "Battery\n", f"{SUPPLY}/BAT0/capacity": "100\n", f"{SUPPLY}/BAT0/status": "Full\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, Battery(100.0, False)),
        ({f"{SUPPLY}/BAT0/status": "Discharging\n", f"{SUPPLY}/BAT0/capacity": "42\n"}, Battery(42.0, True)),
        ({f"{SUPPLY}/BAT0/status": "Unknown\n"}, Battery(100.0, None)),
        ({f"{SUPPLY}/AC/type": "Mains\n", f"{SUPPLY}/AC/online": "1\n"}, Battery(100.0, False)),
        (
            {f"{SUPPLY}/mouse/{name}": text for name, text in (("type", "Battery"), ("scope", "Device"))},
            Battery(100.0, False),
        ),
        (
            {
                f"{SUPPLY}/BAT1/{name}": text
                for name, text in (("type", "Battery"), ("capacity", "20"), ("status", "Discharging"))
            },
            Battery(60.0, True),
        ),
        ({f"{SUPPLY}/BAT0/capacity": "\n"}, None),
        ({f"{SUPPLY}/BAT0/present": "0\n"}, None),
    ],
    ids=["full", "discharging", "unknown", "mains", "mouse", "two", "no-capacity", "absent"],
)
def test_what_the_board_s_batteries_say(tmp_path: Path, files: dict[str, str], expected: Battery | None) -> None:
    found = Machine(put(tmp_path, FULL | files) / "sys").facts().battery
    assert (found.value, bool(found.reason)) == (expected, expected is None)


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
