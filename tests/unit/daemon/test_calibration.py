"""Which calibration a family is served with: the owner's before the shipped one, and what a reload keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jetsel.artefact.installed import install, rollback
from jetsel.base.config import Config, Models
from jetsel.daemon.reload import changes
from jetsel.daemon.snapshot import Snapshot, read_snapshot
from jetsel.daemon.status import family_status
from tests.unit.daemon.families import calibrate, calibration_of, put_family

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
    chosen = Models(starter=False, paths=[str(models)], calibrations=str(owners), **others)
    return read_snapshot(Config(models=chosen), before)


def told(snapshot: Snapshot) -> str | None:
    return family_status(snapshot.families["cats"], 0, 0).calibration


def test_the_owner_s_is_preferred_to_the_shipped_one(models: Path, owners: Path) -> None:
    assert told(served(models, owners)) == "shipped with the models, of May"
    put(models, owners, "June", because="June did best", default_policy={"top1": "chain", "top5": "single:m"})
    family = served(models, owners).families["cats"]
    assert str(family.in_use) == "number 1, of June"
    assert (family.because, family.default_policy) == ("June did best", {"top1": "chain", "top5": "single:m"})


def damage(directory: Path) -> None:
    (directory / "arrays.npz").write_bytes((directory / "arrays.npz").read_bytes()[:-10])


def test_one_that_cannot_be_read_is_refused_and_a_start_serves_the_shipped_one(models: Path, owners: Path) -> None:
    damage(put(models, owners, "June"))
    said = str(told(served(models, owners)))
    assert said.startswith("shipped with the models, of May; rejected: number 1: ")
    assert "damaged" in said


def test_one_that_is_whole_but_cannot_serve_these_models_is_refused(models: Path, owners: Path) -> None:
    put(models, owners, "June", default_policy={"top1": "magic", "top5": "cascade"})
    said = str(told(served(models, owners)))
    assert said.startswith("shipped with the models, of May; rejected: number 1: ")
    assert "the family has no policy 'magic'" in said


def test_a_reload_takes_up_what_was_installed_and_what_was_gone_back_to(models: Path, owners: Path) -> None:
    first = served(models, owners)
    put(models, owners, "June")
    second = served(models, owners, first)
    assert (told(second), changes(first, second)) == ("number 1, of June", ["calibration of cats"])
    put(models, owners, "June", because="of the same day, and yet another")
    third = served(models, owners, second)
    assert (told(third), changes(second, third)) == ("number 2, of June", ["calibration of cats"])
    rollback(owners, "cats")
    rollback(owners, "cats")
    fourth = served(models, owners, third)
    assert (told(fourth), changes(third, fourth)) == ("shipped with the models, of May", ["calibration of cats"])
    assert changes(fourth, served(models, owners, fourth)) == []


def test_a_reload_keeps_the_one_before_where_the_new_one_is_refused(models: Path, owners: Path) -> None:
    put(models, owners, "June", because="June did best")
    first = served(models, owners)
    put(models, owners, "July", **FOREIGN)
    second = served(models, owners, first)
    family = second.families["cats"]
    assert family.in_use.calibration is first.families["cats"].in_use.calibration
    assert family.because == "June did best"
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
    assert family.default_policy["top1"] == "single:l"
    assert "model m is neither served here" in str(family.in_use)
    assert "model m is neither served here" not in family.because, "status shows both: one of them names the models"
