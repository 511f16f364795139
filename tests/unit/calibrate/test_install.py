"""What `jetsel calibrate` keeps of the board, its meter, and a shipped calibration fitted to this machine."""

import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.artefact.coding import read
from jetsel.base.config import Config, Power
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.install import machine_facts, recording_path
from jetsel.calibrate.record.conditions import gather
from jetsel.calibrate.retiming import retime
from jetsel.power.idle import save_idle
from jetsel.power.machine import Machine, comparable_facts
from jetsel.power.meter import open_meter
from jetsel.site.site import FamilyCalibrations
from jetsel.zoo import STARTER, Family, Model, scan
from tests.data.sysfs_trees import tree
from tests.unit.calibrate.answered import answered
from tests.unit.power import test_idle as idle
from tests.unit.power.machines import tx2
from tests.unit.zoo.making import described, put_model

IDLE = msgspec.structs.replace(idle.IDLE, half_width_w=0.05, power_mode=None)


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
        save_idle(msgspec.structs.replace(IDLE, power_mode=mode), tmp_path)
    with open_meter(Power(sysfs=str(tree("jetson-tx2"))), tmp_path) as opened:
        assert opened.meter is None
        assert "idle power was not measured on jetson-tx2" in (opened.reason or "")
        assert "run `jetsel power calibrate`" in (opened.reason or "")


def test_with_both_the_total_less_idle_power_is_metered(tmp_path: Path) -> None:
    save_idle(IDLE, tmp_path)
    with open_meter(Power(sysfs=str(tree("jetson-tx2"))), tmp_path) as opened:
        assert (opened.reason, opened.idle_half_w) == (None, 0.05)
        assert opened.meter is not None
        assert opened.meter.name == "VDD_IN"
        assert "new values" in (opened.meter.since(opened.meter.begin()).reason or "")


Shipped = tuple[Calibration, Path]
"""A calibration that came with its models, and its folder."""


@pytest.fixture
def shipped(tmp_path: Path) -> Shipped:
    """The starter family's calibration, with answers of its own."""
    shutil.copytree(STARTER / "calibration", tmp_path / "calibration")
    found = read(tmp_path / "calibration")
    recording = answered(tuple(found.identities))
    (tmp_path / "calibration" / ANSWERS).write_bytes(recording.condense_answers(found.temperatures))
    return found, tmp_path / "calibration"


def served(*names: str) -> tuple[Family, dict[str, Model]]:
    family = scan([STARTER]).families["starter"]
    return family, {model.manifest.name: model for model in family.models if model.manifest.name in names}


def test_times_are_this_machines_and_all_that_depends_on_them_is_fitted_again(shipped: Shipped) -> None:
    family, models = served("xs", "s")
    made = retime(family, models, *shipped, Config(), lambda *_: None)
    before, _ = shipped
    assert list(made.identities) == ["xs", "s"]
    assert made.identities == {name: before.identities[name] for name in models}
    assert made.temperatures == {name: before.temperatures[name] for name in models}
    assert all(made.costs_ms[name] not in (0, before.costs_ms[name]) for name in models), "measured anew"
    assert (made.images.count, made.features_px) == (200, before.features_px)
    assert "cascade" in made.parts
    assert "based on the times of this machine" in made.because


def test_promises_are_tested_again_and_those_that_unknown_images_secured_are_dropped(shipped: Shipped) -> None:
    family, models = served("xs", "s")
    before, folder = shipped
    kept, dropped = (
        retime(family, models, one, folder, Config(), lambda *_: None).promises
        for one in (before, structs.replace(before, images=structs.replace(before.images, unknown=100)))
    )
    assert kept
    assert dropped == {}


def test_models_that_only_its_answers_know_take_the_place_of_its_own(shipped: Shipped, tmp_path: Path) -> None:
    before, folder = shipped
    recording = answered(tuple(before.identities))
    others = {name: before.identities[name] for name in ("xs", "s")}
    (folder / ANSWERS).write_bytes(recording.condense_answers(before.temperatures, others))
    identities = {name: identity for name, identity in before.identities.items() if name not in others}
    known = structs.replace(before, identities=identities)
    family, models = served("xs", "s")
    made = retime(family, models, known, folder, Config(), lambda *_: None)
    assert made.identities == others
    assert made.temperatures == pytest.approx({name: before.temperatures[name] for name in others})
    strange = {**models, "m": models["s"]}
    made = retime(family, strange, known, folder, Config(), lambda *_: None)
    assert made.identities == others, "one that the answers do not know is left out"


def test_without_its_answers_or_for_other_models_it_is_refused(shipped: Shipped, tmp_path: Path) -> None:
    family, models = served("xs")
    other = {"xs": next(iter(served("s")[1].values()))}
    with pytest.raises(CalibrationError, match="was made for other models"):
        retime(family, other, *shipped, Config(), lambda *_: None)
    (shipped[1] / ANSWERS).unlink()
    with pytest.raises(CalibrationError, match="ships without recorded answers: calibrate on images"):
        retime(family, models, *shipped, Config(), lambda *_: None)
