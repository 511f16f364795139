"""A calibration that came with its models is fitted to this machine's models and times."""

import shutil
from pathlib import Path

import pytest
from msgspec import structs

from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.artefact.coding import read
from jetsel.base.config import Config
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.retiming import retime
from jetsel.zoo import STARTER, Family, Model, scan
from tests.unit.calibrate.answered import answered

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
