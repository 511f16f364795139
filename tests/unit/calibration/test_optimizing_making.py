"""Candidates are made whole or not at all, and only once; one that fails costs itself alone."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from calibration.optimizing.making import make
from calibration.optimizing.material import Material, OptimizePlan
from calibration.optimizing.recipes import Recipe
from jetsel import image
from jetsel.base.errors import CalibrationError
from jetsel.zoo import STARTER, scan

FAMILY = scan([STARTER]).families["starter"]
PARENT = next(model for model in FAMILY.models if model.manifest.name == "xs")
OF_NONE, CLUSTERED = Recipe("one-d", 0.5, numbers="int8"), Recipe(numbers="clustered")


def ignored(_what: str, _done: int, _total: int) -> None: ...


def material(folder: Path, photographs: int) -> Material:
    rng = np.random.default_rng(3)
    paths = [folder / f"{number}.png" for number in range(photographs)]
    for path in paths:
        cv2.imwrite(str(path), rng.integers(0, 256, (64, 64, 3), dtype=np.uint8))
    limits = image.Limits(max_bytes=1_000_000, max_pixels=1_000_000)
    return Material(OptimizePlan(PARENT, FAMILY, paths, limits, folder / "work"), ignored)


def test_one_that_fails_costs_itself_alone_and_the_others_are_made_once(tmp_path: Path) -> None:
    shown = material(tmp_path, 60)
    found = make([OF_NONE, CLUSTERED], shown)
    assert list(found.models) == ["xs-clustered"]
    assert "one-d-50, from which it is made, was not made" in found.failed["xs-one-d-50-int8"]
    file, said = found.models["xs-clustered"].path, found.models["xs-clustered"].manifest
    assert (said.parameters, said.multiply_accumulates) == (PARENT.manifest.parameters, None)
    made_ns = file.stat().st_mtime_ns
    assert make([CLUSTERED], shown).models["xs-clustered"].path.stat().st_mtime_ns == made_ns


def test_too_few_photographs_to_learn_from_are_told_with_what_to_do(tmp_path: Path) -> None:
    shown = material(tmp_path, 49)
    with pytest.raises(CalibrationError, match=r"49 images can be read, and 50 are the minimum"):
        shown.levels(PARENT.manifest.input)
