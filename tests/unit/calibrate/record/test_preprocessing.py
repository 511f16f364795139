"""How images are prepared for a model, compared with other ways on models that only one way suits."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from jetsel.base.files import TEMPORARY
from jetsel.calibrate.record.cuts import Cut
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.photographs import Labelled, find_images
from jetsel.calibrate.record.preprocessing import (
    CURRENT,
    MOST_IMAGES,
    VariantComparison,
    draw_images,
    preprocessing_variants,
)
from jetsel.calibrate.record.recorder import loaded_models, record
from jetsel.calibrate.record.workers import Observer
from jetsel.zoo import Family, scan
from jetsel.zoo.conventions import CONVENTIONS, convention_spec
from tests.unit.calibrate.record.making import QUICK, rows
from tests.unit.zoo.lights import lights, put_light_model


def compared(used: list[bool], other: list[bool], others: int = 1) -> VariantComparison:
    right = {CURRENT: np.array(used)} | {f"--like {n}": np.array(other) for n in range(others)}
    return VariantComparison(right, {0: len(used) // 2, 1: len(used) - len(used) // 2})


@pytest.mark.parametrize(
    ("won", "lost", "others", "is_better"),
    [  # 0.5 ** 6 is above 0.01, 0.5 ** 7 below; of seven ways each has a seventh of the risk: 0.5 ** 9 is above it
        (6, 0, 1, False),
        (7, 0, 1, True),
        (9, 0, 7, False),
        (10, 0, 7, True),
        (10, 1, 1, True),  # 12 of 2,048 draws favour one so much
        (9, 1, 1, False),  # 11 of 1,024 do
    ],
)
def test_a_way_is_better_only_if_chance_would_hardly_favour_it_so_much(
    won: int, lost: int, others: int, is_better: bool
) -> None:
    both = [True] * 20
    found = compared([False] * won + [True] * lost + both, [True] * won + [False] * lost + both, others)
    assert found.better_variant == ("--like 0" if is_better else None)


def test_answers_that_a_guess_would_give_prove_nothing() -> None:
    assert compared([True] * 10, [False] * 10).is_proven(CURRENT)  # 1 of 1,024 guesses
    assert not compared([True] * 9 + [False], [False] * 10).is_proven(CURRENT)  # 11 of 1,024
    assert not compared([True] * 9, [True] * 9).is_enough
    assert compared([True] * 10, [True] * 10).is_enough
    assert not replace(compared([True] * 10, [True] * 10), classes={3: 10}).is_enough


def test_images_are_drawn_evenly_over_the_classes_and_the_same_wherever_they_lie() -> None:
    def images(folder: str) -> list[Labelled]:
        sizes = {0: 200, 1: 30, 2: 5}
        return [Labelled(Path(f"{folder}/{c}/{n}.jpg"), c, str(c)) for c, size in sizes.items() for n in range(size)]

    chosen = draw_images(images("/a"))
    assert len(chosen) == MOST_IMAGES
    assert [sum(one.class_number == c for one in chosen) for c in range(3)] == [65, 30, 5]
    assert [one.path.name for one in chosen] == [one.path.name for one in draw_images(reversed(images("/b")))]
    assert draw_images([Labelled(Path("a.jpg"), None, None), Labelled(Path("a.jpg"), 0, "0", Cut(64))]) == []


def test_ways_differ_in_levels_channels_and_resizing() -> None:
    used = convention_spec("timm", 64, 48)
    tried = preprocessing_variants(used, 64, 48)
    assert tried[CURRENT] == used
    assert {"--like ultralytics", "--like keras", "--like keras-tf"} < tried.keys()
    assert "--like torchvision" not in tried, "it has the same levels"
    assert tried["--channels bgr"] == structs.replace(used, channels="bgr")
    assert tried["--resize stretch"].resize == "stretch"
    assert len(set(tried.values())) == len(tried)
    assert preprocessing_variants(tried["--resize stretch"], 64, 48)["--resize shorter-side"].crop == "center"
    assert list(preprocessing_variants(None, 64, 48)) == [f"--like {name}" for name in CONVENTIONS]


@pytest.fixture
def family(tmp_path: Path) -> Family:
    """Three models for the levels -1 to 1: one prepared so, one as if for 0 to 1, and one that nobody doubts."""
    for name, like, is_doubted in (("good", "keras-tf", True), ("bad", "ultralytics", True), ("ours", "timm", False)):
        put_light_model(tmp_path / "models", name, like, is_doubted=is_doubted)
    return scan([tmp_path / "models"]).families["lights"]


def go(folder: Path, family: Family, images: Path, **options: Any) -> list[str]:
    """Record, and return the phases that were told."""
    told: list[str] = []
    quick = replace(QUICK, unproven=frozenset({"good", "bad"}), **options)
    with loaded_models(family) as engines:
        found = find_images(images, family.labels, None, need_labels=True)
        record(folder / "recording.db", family, engines, found, quick, Observer(lambda phase, *_: told.append(phase)))
    return told


def test_a_calibration_warns_of_what_is_surely_worse_and_notes_what_passes_once(family: Family, tmp_path: Path) -> None:
    images = lights(tmp_path / "images", 24)
    assert go(tmp_path, family, images).count("comparing") == 2 * 25
    assert load(tmp_path / "recording.db", family).doubts == {
        "bad": "bad is right on 12 of 24 images; prepared with --like keras-tf, on 24: jetsel models set bad "
        "--family lights --like keras-tf"
    }
    noted = {
        one.manifest.name: one.manifest.preprocessing for one in scan([tmp_path / "models"]).families["lights"].models
    }
    assert noted["good"] is not None
    assert (noted["good"].source, noted["good"].is_checked) == ("a file; checked on 24 images", True)
    assert noted["bad"] is not None
    assert not noted["bad"].is_checked
    assert noted["ours"] is None
    assert "comparing" not in go(tmp_path, family, images), "the recording has it"
    assert load(tmp_path / "recording.db", family).doubts.keys() == {"bad"}


def test_what_passes_in_a_folder_that_cannot_be_written_is_not_compared_again_either(
    family: Family, tmp_path: Path
) -> None:
    (tmp_path / "models" / f"{TEMPORARY}work").touch()  # where a folder is due
    images = lights(tmp_path / "images", 24)
    assert "comparing" in go(tmp_path, family, images)
    assert [one.manifest.preprocessing for one in family.models] == [
        one.manifest.preprocessing for one in scan([tmp_path / "models"]).families["lights"].models
    ]
    assert "comparing" not in go(tmp_path, family, images)


def test_too_few_images_or_one_class_stop_no_calibration_and_settle_nothing(family: Family, tmp_path: Path) -> None:
    images = lights(tmp_path / "images", 24)
    shutil.rmtree(images / "dark")
    go(tmp_path, family, images)
    assert load(tmp_path / "recording.db", family).doubts == {}
    assert rows(tmp_path / "recording.db", "SELECT 1 FROM meta WHERE key LIKE 'preprocessing%'") == []
