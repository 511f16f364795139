"""What `jetsel calibrate` keeps of the board, and the meter that a configuration asks for."""

from pathlib import Path

import msgspec
import pytest

from jetsel.base.config import Config, Power
from jetsel.calibrate.install import machine_facts, recording_path
from jetsel.calibrate.record.conditions import gather
from jetsel.power.idle import save_idle
from jetsel.power.machine import Machine, comparable_facts
from jetsel.power.meter import open_meter
from jetsel.site.site import FamilyCalibrations
from jetsel.zoo import scan
from tests.data.sysfs_trees import tree
from tests.unit.power.machines import IDLE, tx2
from tests.unit.zoo.making import described, put_model

MEASURED = msgspec.structs.replace(IDLE, half_width_w=0.05, power_mode=None)


def test_the_board_is_kept_where_times_were_measured_on_it_as_it_is_now(tmp_path: Path) -> None:
    power = Power(sysfs=str(tx2(tmp_path)))
    measured = gather(power.sysfs).described()
    facts = Machine(power.sysfs).facts()
    assert facts.power_mode.value is not None
    assert machine_facts(power, measured) == comparable_facts(facts)


def test_nothing_is_kept_where_times_come_from_another_board_or_power_mode(tmp_path: Path) -> None:
    power = Power(sysfs=str(tx2(tmp_path)))
    measured = gather(power.sysfs).described()
    assert machine_facts(power, {}) == {}
    for what in ("board", "power mode", "CPU clock"):
        assert machine_facts(power, measured | {what: "another"}) == {}


def test_a_family_with_larger_inputs_gets_a_recording_of_its_own(tmp_path: Path) -> None:
    def recording() -> Path:
        models = scan([tmp_path / "models"]).families["pets"]
        return recording_path(FamilyCalibrations("pets", tmp_path, Config(), models, True, {}), tmp_path / "images")

    put_model(tmp_path / "models", name="s")
    before = recording()
    put_model(tmp_path / "models", name="m")
    assert recording() == before
    larger = described()["input"] | {"width_px": 320, "height_px": 320}
    put_model(tmp_path / "models", name="l", input=larger)
    assert recording() != before


def test_without_a_sensor_there_is_no_meter_and_the_reason_is_said(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    with open_meter(Power(sysfs=f"{tmp_path}/sys"), tmp_path) as opened:
        assert opened.meter is None
        assert "no power sensor" in (opened.reason or "")


@pytest.mark.parametrize("mode", [None, "3 MAXP_CORE_ARM"])
def test_without_idle_power_of_the_mode_of_now_the_repair_is_to_measure_it(tmp_path: Path, mode: str | None) -> None:
    if mode is not None:
        save_idle(msgspec.structs.replace(MEASURED, power_mode=mode), tmp_path)
    with open_meter(Power(sysfs=str(tree("jetson-tx2"))), tmp_path) as opened:
        assert opened.meter is None
        assert "idle power was not measured on jetson-tx2" in (opened.reason or "")
        assert "run `jetsel power calibrate`" in (opened.reason or "")


def test_with_both_the_total_less_idle_power_is_metered(tmp_path: Path) -> None:
    save_idle(MEASURED, tmp_path)
    with open_meter(Power(sysfs=str(tree("jetson-tx2"))), tmp_path) as opened:
        assert (opened.reason, opened.idle_half_w) == (None, 0.05)
        assert opened.meter is not None
        assert opened.meter.name == "VDD_IN"
        assert "new values" in (opened.meter.since(opened.meter.begin()).reason or "")
