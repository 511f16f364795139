"""What `jetsel doctor` says of power: sensors, rails, the total, what is dropped, and whether jetson-stats answers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel.cli.doctoring.finding import Finding
from jetsel.cli.doctoring.power import power
from jetsel.config import Config, Power
from jetsel.power.idle import Idle, save
from jetsel.power.machine import Fact, Machine
from tests.unit.cli.test_doctor import by_name, subject
from tests.unit.power.machines import THERMAL, TX2, put, tx2
from tests.unit.power.test_machine_jtop import DOUBLES

BOARDS = Path(__file__).parents[2] / "data/sysfs"


def looked_at(sysfs: Path, **settings: Any) -> dict[str, Finding]:
    return by_name(power(subject(Config(power=Power(sysfs=str(sysfs), **settings)))))


def test_a_board_tells_its_table_its_rails_and_their_total() -> None:
    found = looked_at(BOARDS / "jetson-tx2")
    assert found["table of boards"].state == "ok"
    assert found["table of boards"].said.startswith("jetson-tx2: ")
    assert found["VDD_SYS_GPU"].state == "ok"
    assert f"{BOARDS}/jetson-tx2/" in found["VDD_SYS_GPU"].said
    assert found["total"] == Finding("total", "ok", "VDD_IN")


def test_a_rail_that_cannot_be_read_is_a_warning_and_so_is_the_total_that_it_makes(tmp_path: Path) -> None:
    shutil.copytree(BOARDS / "jetson-tx2", tmp_path / "tree", symlinks=True)
    for path in (tmp_path / "tree").rglob("in_*0_input"):  # both sensors have a channel 0
        path.write_text("")
    found = looked_at(tmp_path / "tree")
    assert (found["VDD_IN"].state, found["VDD_IN"].said.startswith("dropped: ")) == ("warning", True)
    assert (found["total"].state, "VDD_IN" in found["total"].said) == ("warning", True)
    assert found["VDD_SYS_CPU"].state == "ok"


def test_a_machine_without_a_sensor_is_no_failure_unless_one_is_asked_for(tmp_path: Path) -> None:
    assert looked_at(tmp_path)["total"].state == "info"
    for settings in ({"sensor": "ina3221"}, {"budget_w": 7.5}):
        assert looked_at(tmp_path, **settings)["total"].state == "warning"
    assert looked_at(tmp_path, sensor="none")["sensors"].state == "info"


def test_a_board_that_is_in_no_table_fails_with_those_that_are(tmp_path: Path) -> None:
    (found,) = looked_at(tmp_path, board="jetson-tx3").values()
    assert (found.state, "jetson-tx2" in found.said) == ("failed", True)


def test_idle_power_is_told_where_it_was_measured_in_this_power_mode(tmp_path: Path) -> None:
    sysfs = shutil.copytree(BOARDS / "jetson-tx2", tmp_path / "sys", symlinks=True)
    put(tmp_path, {name: TX2[name] for name in ("var/lib/nvpmodel/status", "etc/nvpmodel.conf")})
    kept = {"calibration": str(tmp_path / "power")}
    missing = looked_at(sysfs, **kept)["idle power"]
    assert (missing.state, missing.repair) == ("warning", "run `jetsel power calibrate`")
    assert missing.said.endswith("not measured on jetson-tx2 in power mode 3 MAXP_CORE_ARM")
    measured = Idle(
        mean_w=3.125,
        half_width_w=0.0123,
        drift_w_per_min=0.0,
        sampler_w=None,
        sampler_half_width_w=0.01,
        samples=60_000,
        seconds=60.0,
        rails=("VDD_IN",),
        board="jetson-tx2",
        power_mode="3 MAXP_CORE_ARM",
        measured_at="2026-11-21T12:00:00+00:00",
        facts=Machine(sysfs).facts(),
    )
    save(measured, tmp_path / "power")
    said = "3.12 W, give or take 0.012 W, measured 2026-11-21T12:00:00+00:00"
    assert looked_at(sysfs, **kept)["idle power"] == Finding("idle power", "ok", said)
    put(sysfs, {"devices/system/cpu/online": "0\n"})
    with_cores = msgspec.structs.replace(Machine(sysfs).facts(), cores=Fact("0-5"))
    save(msgspec.structs.replace(measured, facts=with_cores), tmp_path / "power")
    stale = looked_at(sysfs, **kept)["idle power"]
    assert stale.said == f"{said}; since then running CPU cores changed from '0-5' to '0'"
    assert (stale.state, stale.repair) == ("warning", "run `jetsel power calibrate` again")


def test_heat_and_pinned_clocks_are_told(tmp_path: Path) -> None:
    sysfs = tx2(tmp_path)
    put(tmp_path, {f"{THERMAL}/thermal_zone0/temp": "96000\n"})
    found = looked_at(sysfs)
    assert found["throttled"].state == "warning"
    assert found["throttled"].said == "BCPU-therm is at 96 °C, its passive trip point is 96"
    assert (found["jetson_clocks"].state, found["jetson_clocks"].said[:5]) == ("ok", "off (")


def test_jetson_stats_is_looked_at_only_where_it_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "jtop", raising=False)
    monkeypatch.syspath_prepend(str(DOUBLES))
    found = looked_at(tmp_path)["jetson-stats"]
    assert (found.state, "it is installed: power.jtop = true" in found.said) == ("info", True)
    assert "jtop" not in sys.modules
    assert looked_at(tmp_path, jtop=True)["jetson-stats"] == Finding("jetson-stats", "ok", "answers: version 4.2.8")
    sys.modules["jtop"].service.fault = "inactive"
    refused = looked_at(tmp_path, jtop=True)["jetson-stats"]
    assert (refused.state, "not active" in refused.said, bool(refused.repair)) == ("warning", True, True)
