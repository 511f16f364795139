"""Which calibration a family is served with, what a reload keeps, and what is logged of retiming at the first start."""

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from jetsel.artefact.calibration import ANSWERS
from jetsel.artefact.coding import MANIFEST, VERSION
from jetsel.artefact.installed import install
from jetsel.daemon.first_start import needs_retiming, report_other_machine, retime
from jetsel.daemon.reload import changes
from jetsel.daemon.snapshot import Snapshot, read_snapshot
from jetsel.daemon.status import family_status
from jetsel.site.site import FamilyCalibrations
from jetsel.zoo import scan
from jetsel.zoo.manifest import PrecisionChoice, Provenance
from jetsel.zoo.placing import rewrite_manifest
from tests.unit.daemon.families import calibrate, calibration_of, config_of, put_family

FIGURES = {"mean_ms": 1.0, "mean_mj": None, "runs": {}}
TOP1 = {"s": 0.8, "m": 0.7, "l": 0.9}
FOREIGN = {"labels_sha256": "a" * 64}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A family of three models, shipped with a calibration of May."""
    folder = put_family(tmp_path / "cats", "cats", "s", "m", "l")
    calibrate(folder, "cats", created="May")
    return folder


@pytest.fixture
def owners(tmp_path: Path) -> Path:
    return tmp_path / "owners"


def put(models: Path, owners: Path, created: str, **changed: Any) -> Path:
    """Install a calibration of the owner's; return its directory."""
    return install(calibration_of(models, "cats", created=created, **changed), owners, "cats").directory


def served(models: Path, owners: Path, before: Snapshot | None = None, **others: Any) -> Snapshot:
    return read_snapshot(config_of(models, models={"calibrations": str(owners), **others}), before)


def told(snapshot: Snapshot) -> str | None:
    return family_status(snapshot.families["cats"], 0, 0).calibration


def test_the_owner_s_is_preferred_to_the_shipped_one(models: Path, owners: Path) -> None:
    assert told(served(models, owners)) == "shipped with the models, of May"
    put(models, owners, "June", because="June did best", default_policy="chain")
    family = served(models, owners).families["cats"]
    assert str(family.in_use) == "number 1, of June"
    assert (family.defaults.because, family.defaults.policy) == ("June did best", "chain")


@pytest.mark.parametrize(
    ("changed", "is_damaged", "words"),
    [
        ({}, True, "damaged"),
        ({"default_policy": "magic"}, False, "the family has no policy 'magic'"),
    ],
)
def test_one_that_cannot_serve_these_models_is_refused_and_a_start_serves_the_shipped_one(
    models: Path, owners: Path, changed: dict[str, Any], is_damaged: bool, words: str
) -> None:
    directory = put(models, owners, "June", **changed)
    if is_damaged:
        (directory / "arrays.npz").write_bytes((directory / "arrays.npz").read_bytes()[:-10])
    said = str(told(served(models, owners)))
    assert said.startswith("shipped with the models, of May; rejected: number 1: ")
    assert words in said


def test_one_of_an_older_version_leaves_the_family_to_its_most_expensive_model_and_the_log_says_so_once(
    models: Path, owners: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = models / "calibration" / MANIFEST
    path.write_text(path.read_text().replace(f'"version":{VERSION}', f'"version":{VERSION - 1}'))
    family = served(models, owners).families["cats"]
    assert (family.defaults.policy, family.in_use.calibration) == ("single:l", None)
    (said,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert f"has version {VERSION - 1}, and this jetsel reads {VERSION}: jetsel calibrate IMAGES" in said


def test_a_reload_keeps_the_one_before_where_the_new_one_is_refused(models: Path, owners: Path) -> None:
    put(models, owners, "June", because="June did best")
    first = served(models, owners)
    put(models, owners, "July", **FOREIGN)
    second = served(models, owners, first)
    family = second.families["cats"]
    assert family.in_use.calibration is first.families["cats"].in_use.calibration
    assert family.defaults.because == "June did best"
    said = str(told(second))
    assert said.startswith("number 1, of June; rejected: number 2: the calibration of family cats was made for")
    assert changes(first, second) == [f"calibration of cats ({said})"]
    third = served(models, owners, second)
    assert told(third) == said, "refused again, and told again"
    put(models, owners, "August")
    fourth = served(models, owners, third)
    assert (told(fourth), changes(third, fourth)) == ("number 3, of August", ["calibration of cats"])


def test_a_reload_keeps_nothing_that_does_not_belong_to_the_models_any_more(models: Path, owners: Path) -> None:
    put(models, owners, "June")
    first = served(models, owners)
    second = served(models, owners, first, only=["s", "l"])
    family = second.families["cats"]
    assert family.in_use.calibration is None
    assert family.defaults.policy == "single:l"
    assert "model m is neither served here" in str(family.in_use)
    assert "model m is neither served here" not in family.defaults.because, (
        "status shows both: one of them names the models"
    )


def test_models_that_a_family_gains_are_listed_and_used_by_no_policy_until_a_calibration_knows_them(
    models: Path, owners: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jetsel.models")
    put(models, owners, "June", costs_ms={"s": 1e-9, "m": 2e-9, "l": 3e-9})  # less than the manifest of any says
    first = served(models, owners)
    assert family_status(first.families["cats"], 0, 0).not_calibrated == []
    assert not caplog.records
    put_family(models, "cats", "s", "m", "l", "l-night")
    second = served(models, owners, first)
    family = second.families["cats"]
    status = family_status(family, 0, 0)
    assert (status.calibration, status.not_calibrated) == ("number 1, of June", ["l-night"])
    (line,) = caplog.records
    assert line.getMessage().startswith("family cats: not calibrated: l-night: no policy uses them until")
    assert (family.defaults.policy, family.defaults.fallback) == ("cascade", "l")
    assert list(family.models) == ["l-night", "s", "m", "l"]
    deciding = [family.policies[name] for name in family.policies if not name.startswith("single:")]
    assert {policy.name for policy in deciding} == {"cascade", "chain"}
    assert {model for policy in (*deciding, family.requirements) for model in policy.models} == {"s", "m", "l"}
    assert "single:l-night" in family.policies, "a request that names it is answered by it"
    put(models, owners, "July")
    assert family_status(served(models, owners, second).families["cats"], 0, 0).not_calibrated == []


def test_a_model_that_changed_sets_its_calibration_aside_and_the_best_unchanged_one_answers(
    models: Path, owners: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jetsel.models")
    put(models, owners, "June", figures={f"single:{name}": FIGURES | {"top1": top1} for name, top1 in TOP1.items()})
    first = served(models, owners)
    largest = next(model for model in scan([models]).families["cats"].models if model.manifest.name == "l")
    rewrite_manifest(largest, input=structs.replace(largest.manifest.input, channels="bgr"))
    for before in (None, first):  # at a start, and at a reload
        caplog.clear()
        family = served(models, owners, before).families["cats"]
        status = family_status(family, 0, 0)
        assert (family.defaults.policy, family.defaults.fallback) == ("single:s", "s"), (
            "m is less accurate, l has changed"
        )
        assert list(family.models) == ["l", "s", "m"], "l never is taken for the most expensive one"
        assert family.defaults.because.endswith("answers until `jetsel calibrate IMAGES`")
        assert (status.not_calibrated, status.calibration_identity) == (["l"], None)
        assert "model l has changed. Run `jetsel calibrate IMAGES`" in str(status.calibration)
        refused = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert "model l has changed. Run `jetsel calibrate IMAGES`" in refused[0]
    config = config_of(models, models={"calibrations": str(owners)})
    calibrations = FamilyCalibrations("cats", owners, config, scan([models]).families["cats"], True, {})
    found = calibrations.incumbent()
    assert (found.policy, found.calibration, found.is_chosen) == ("single:s", None, False)
    rewrite_manifest(largest, input=largest.manifest.input)
    assert told(served(models, owners)) == "number 1, of June"


def test_a_shipped_one_for_other_models_is_one_plain_line_if_the_start_fits_it_to_those_that_are_there(
    models: Path, owners: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jetsel.models")
    family = served(models, owners, only=["s", "l"]).families["cats"]
    assert not needs_retiming(family)
    (models / "calibration" / ANSWERS).touch()
    family = served(models, owners, only=["s", "l"]).families["cats"]
    assert needs_retiming(family)
    assert (family.defaults.policy, family.in_use.calibration) == ("single:l", None)
    without, with_answers = caplog.records
    assert (without.levelname, with_answers.levelname) == ("ERROR", "INFO")
    assert "`jetsel calibrate --retime` fits it to these" in with_answers.getMessage()


@pytest.mark.parametrize(
    ("here", "is_reported"), [("TX2", False), ("Orin", True), (None, False)], ids=["same", "other", "unknown"]
)
def test_models_that_were_chosen_on_another_machine_are_one_line(
    models: Path, caplog: pytest.LogCaptureFixture, here: str | None, is_reported: bool
) -> None:
    caplog.set_level(logging.INFO, "jetsel.models")
    (first, *others) = scan([models]).families["cats"].models
    choice = PrecisionChoice(float_ms=2.0, int8_ms=1.0, machine="TX2")
    provenance = Provenance(source="pulled", precision_choice=choice)
    chosen = replace(first, manifest=structs.replace(first.manifest, provenance=provenance))
    report_other_machine("cats", [chosen, *others], here)
    lines = [record.getMessage() for record in caplog.records]
    assert ["family cats were chosen on TX2: `jetsel models pull" in line for line in lines] == [True] * is_reported


UNTIL_IT_IS_THERE = """
import pathlib, sys, threading
if not pathlib.Path(sys.argv[1]).exists():
    threading.Event().wait()
print("ms per image: s 1.0")
"""


def test_a_run_that_exceeds_the_limit_is_repeated_once_the_machine_is_quiet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jetsel.models")
    quiet = tmp_path / "quiet"
    command = [sys.executable, "-c", UNTIL_IT_IS_THERE, str(quiet)]
    retime("yard", command, [0.1, 600.0], quiet.touch)
    busy, done = [record.getMessage() for record in caplog.records]
    assert "too busy" in busy
    assert "tries again when it is quiet" in busy
    assert done == "family yard: ms per image: s 1.0"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit('jetsel: s cannot run')", "s cannot run"),
        ("import os; os.abort()", "was ended"),
        ("1 / 0", "`jetsel calibrate --retime` shows why"),
    ],
)
def test_a_failure_is_one_plain_line(source: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    retime("yard", [sys.executable, "-c", source], [600.0], lambda: None)
    (record,) = caplog.records
    assert record.getMessage().endswith(f"{reason}; the daemon tries again at its next start")
    assert "python" not in record.getMessage()
