"""An owner's names for classes: the family that has them is named, and what nobody knows or shows is said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.record.classes import check_family, remarks
from jetsel.zoo import Family, Labels


def family(name: str, *classes: str) -> Family:
    content = "".join(f"{one}\t{one}\n" for one in classes).encode()
    return Family(name, Labels.parse(content, Path(name)), ())


FLOWERS = family("flowers", "daisy", "rose", "tulip")
STARTER = family("starter", "tabby", "espresso")


def folder(tmp_path: Path, *classes: str) -> Path:
    for one in classes:
        (tmp_path / one).mkdir()
    return tmp_path


def test_the_family_that_has_the_classes_is_named(tmp_path: Path) -> None:
    photos = folder(tmp_path, "daisy", "Rose", ".hidden")
    said = "0 of its 2 classes are of family starter, and 2 of family flowers: use --family flowers"
    with pytest.raises(CalibrationError, match=said):
        check_family(photos, STARTER, {"flowers": FLOWERS}, None)
    check_family(photos, FLOWERS, {"starter": STARTER}, None)
    check_family(photos, STARTER, {"flowers": FLOWERS}, tmp_path / "map.csv")  # which has the last word


def test_what_nobody_knows_and_what_has_no_photographs_is_said() -> None:
    unknown = "unknown label: {!r} is not a class of the family; rename it"
    left_out = [("a", unknown.format("lily")), ("b", "unreadable: empty"), ("c", unknown.format("bee's"))]
    loaded = SimpleNamespace(left_out=left_out, recording=SimpleNamespace(classes=np.array([0, 0, 2])))
    assert remarks(loaded, FLOWERS) == ["no class of family flowers: lily (1), bee's (1)", "no images of rose"]  # type: ignore[arg-type]
    alone = SimpleNamespace(left_out=[], recording=SimpleNamespace(classes=np.array([1, 1])))
    assert remarks(alone, FLOWERS) == [  # type: ignore[arg-type]
        "all images are of class rose: the results do not apply to the other classes"
    ]
    many = family("many", *(f"class {number}" for number in range(60)))
    assert remarks(loaded, many)[1:] == ["images of 2 of the 60 classes"]  # type: ignore[arg-type]


def test_a_misspelt_class_names_the_one_that_is_near() -> None:
    left_out = [("a", "unknown label: 'rsoe' is not a class of the family; rename it")]
    loaded = SimpleNamespace(left_out=left_out, recording=SimpleNamespace(classes=np.array([0, 1, 2])))
    assert remarks(loaded, FLOWERS)[0].endswith("rsoe (1) (did you mean rose?)")  # type: ignore[arg-type]
