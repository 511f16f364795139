"""A calibration that came with its models is fitted to this machine's times; which of two twins keeps its place."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from jetsel import image
from jetsel.artefact.calibration import ANSWERS
from jetsel.artefact.coding import read
from jetsel.base.config import Config
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.retiming import Shipped, judge_twins, retime
from jetsel.zoo import STARTER, Family, Model, scan
from tests.unit.calibrate.answered import answered

LIMITS = image.Limits(1_000_000, 1_000_000)


@pytest.fixture
def shipped(tmp_path: Path) -> Shipped:
    """The starter family's calibration, with answers of its own."""
    shutil.copytree(STARTER / "calibration", tmp_path / "calibration")
    found = read(tmp_path / "calibration")
    recording = answered(tuple(found.identities))
    (tmp_path / "calibration" / ANSWERS).write_bytes(recording.condensed(found.temperatures))
    return Shipped(found, tmp_path / "calibration")


def served(*names: str) -> tuple[Family, dict[str, Model]]:
    family = scan([STARTER]).families["starter"]
    return family, {model.manifest.name: model for model in family.models if model.manifest.name in names}


def test_times_are_this_machines_and_all_that_depends_on_them_is_fitted_again(shipped: Shipped) -> None:
    family, models = served("xs", "s")
    made = retime(family, models, shipped, Config(), LIMITS, lambda *_: None)
    before = shipped.calibration
    assert list(made.identities) == ["xs", "s"]
    assert made.identities == {name: before.identities[name] for name in models}
    assert made.temperatures == {name: before.temperatures[name] for name in models}
    assert all(made.costs_ms[name] not in (0, before.costs_ms[name]) for name in models), "measured anew"
    assert (made.photographs, made.features_px) == (200, before.features_px)
    assert {"cascade", "cascade-averaged"} <= set(made.parts)
    assert "based on the times of this machine" in made.because


def test_promises_are_tested_again_and_those_that_unknown_images_secured_are_dropped(shipped: Shipped) -> None:
    family, models = served("xs", "s")
    with_unknown = replace(shipped, calibration=structs.replace(shipped.calibration, unknown_images=100))
    kept, dropped = (
        retime(family, models, one, Config(), LIMITS, lambda *_: None).promises for one in (shipped, with_unknown)
    )
    assert kept
    assert dropped == {}


def test_without_its_answers_or_for_other_models_it_is_refused(shipped: Shipped, tmp_path: Path) -> None:
    family, models = served("xs")
    other = {"xs": next(iter(served("s")[1].values()))}
    with pytest.raises(CalibrationError, match="was made for other models"):
        retime(family, other, shipped, Config(), LIMITS, lambda *_: None)
    (shipped.folder / ANSWERS).unlink()
    with pytest.raises(CalibrationError, match="ships without recorded answers: calibrate on images"):
        retime(family, models, shipped, Config(), LIMITS, lambda *_: None)


TWINS = {"s-int8": "s", "l-int8": "l"}
ACCURACY = {"s": 0.50, "s-int8": 0.48, "l": 0.90, "l-int8": 0.897}


def test_eight_bits_that_are_not_clearly_faster_are_left_out_and_say_why() -> None:
    judged = judge_twins(TWINS, {"s": 4.0, "s-int8": 3.8, "l": 20.0, "l-int8": 26.0}, ACCURACY)
    assert judged.slower == {
        "s-int8": "takes 0.95 times as long as s here",
        "l-int8": "takes 1.3 times as long as l here",
    }
    assert judged.replaced == frozenset()


def test_a_model_of_32_bits_gives_way_to_any_of_8_bits_that_is_faster_and_as_accurate() -> None:
    costs_ms = {"s": 4.0, "s-int8": 2.0, "l": 20.0, "l-int8": 9.0}
    assert judge_twins(TWINS, costs_ms, ACCURACY).replaced == {"l"}, "s loses two points in 8 bits"
    fast = {**costs_ms, "l-int8": 3.0}
    assert judge_twins(TWINS, fast, ACCURACY).replaced == {"s", "l"}, "and l in 8 bits is faster than s, too"
