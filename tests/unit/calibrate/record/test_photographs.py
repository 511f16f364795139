"""Folders, CSVs and label maps: which images are found, what they mean, and which names no family knows."""

import shutil
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from jetsel.base.errors import CalibrationError
from jetsel.base.names import count_reasons
from jetsel.calibrate.record.classes import check_family, remarks
from jetsel.calibrate.record.photographs import FoundImages, class_lookup, class_names, find_images
from jetsel.zoo import Family, Labels
from tests.unit.calibrate.test_listing import touch

LABELS = Labels(
    wnids=("n1", "n2", "n3", "n4"),
    names=("tabby", "fire salamander", "crane", "crane"),
    synonyms=("tabby, tabby cat", "fire salamander, Salamandra", "crane, a bird", "crane, a machine"),
    content=b"",
)


def seen(found: FoundImages) -> list[tuple[str, int | None, str | None]]:
    below = found.source if found.source.is_dir() else found.source.parent
    return [(str(p.path.relative_to(below)), p.class_number, p.label) for p in found.photographs]


def test_folders_are_named_by_identifier_or_english_name(tmp_path: Path) -> None:
    touch(tmp_path, "n2/b.JPEG", "n2/a.png", "Tabby/deep/er/c.webp", "tabby, tabby cat/d.png", "fire_salamander/e.jpg")
    assert seen(find_images(tmp_path, LABELS, None, True)) == [
        ("Tabby/deep/er/c.webp", 0, "Tabby"),
        ("fire_salamander/e.jpg", 1, "fire_salamander"),
        ("n2/a.png", 1, "n2"),
        ("n2/b.JPEG", 1, "n2"),
        ("tabby, tabby cat/d.png", 0, "tabby, tabby cat"),
    ]


def test_what_cannot_be_used_is_listed_with_its_reason(tmp_path: Path) -> None:
    touch(tmp_path, "n1/a.jpg", "n1/notes.txt", "n1/._a.jpg", "@eaDir/b.jpg", "lynx/c.jpg", "crane/d.jpg", "e.jpg")
    found = find_images(tmp_path, LABELS, None, True)
    assert seen(found) == [("n1/a.jpg", 0, "n1")]
    assert [one.path.name for one in found.skipped] == ["@eaDir", "d.jpg", "e.jpg", "c.jpg", "._a.jpg", "notes.txt"]
    assert count_reasons([skipped.reason for skipped in found.skipped]) == {
        "unknown label": 2,  # two classes are called crane
        "no label": 1,
        "not an image": 1,
        "hidden": 1,
        "made by a system": 1,
    }


def test_a_label_map_gives_folders_of_other_names_their_classes(tmp_path: Path) -> None:
    photographs = touch(tmp_path / "photos", "my cats/a.jpg", "n2/b.jpg", "birds/c.jpg")
    label_map = tmp_path / "map.csv"
    label_map.write_text("folder,label\nMy Cats,tabby\nbirds,n3\n")
    assert seen(find_images(photographs, LABELS, label_map, True)) == [
        ("birds/c.jpg", 2, "birds"),
        ("my cats/a.jpg", 0, "my cats"),
        ("n2/b.jpg", 1, "n2"),
    ]
    label_map.write_text("my cats,tabby\nbirds,crane\n")
    with pytest.raises(CalibrationError, match=r"map\.csv, line 2: 'crane' is not a class of the family; write"):
        find_images(photographs, LABELS, label_map, True)
    label_map.write_text("my cats\n")
    with pytest.raises(CalibrationError, match="line 1: 1 columns instead of folder,label"):
        find_images(photographs, LABELS, label_map, True)


@pytest.mark.parametrize("header", ["", "path,label\n", "\ufeffPath,Label\n"])
def test_a_csv_names_paths_relative_to_itself_and_labels(tmp_path: Path, header: str) -> None:
    source = tmp_path / "list.csv"
    source.write_text(f'{header}b/2.jpg,n2\n\na.jpg,"tabby, tabby cat"\na.jpg,"tabby, tabby cat"\nc.jpg,lynx\n')
    found = find_images(source, LABELS, None, True)
    assert seen(found) == [("a.jpg", 0, "tabby, tabby cat"), ("b/2.jpg", 1, "n2")]
    assert [(s.path.name, s.reason.partition(":")[0]) for s in found.skipped] == [("c.jpg", "unknown label")]


def test_without_labels_a_csv_may_have_one_column_and_every_image_at_any_depth_counts(tmp_path: Path) -> None:
    source = touch(tmp_path, "a.jpg", "lynx/b.jpg", "n1/c.jpg", "readme.md") / "list.csv"
    found = find_images(tmp_path, LABELS, None, False)
    assert seen(found) == [("a.jpg", None, None), ("lynx/b.jpg", None, None), ("n1/c.jpg", None, None)]
    source.write_text("path\na.jpg\nb.jpg\n")
    assert [p.path.name for p in find_images(source, LABELS, None, False).photographs] == ["a.jpg", "b.jpg"]
    with pytest.raises(CalibrationError, match="line 2: 1 columns instead of path,label"):
        find_images(source, LABELS, None, True)


def test_a_csv_that_is_none_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "list.csv"
    with pytest.raises(CalibrationError, match=r"No such file or directory; name a CSV file with the .* path,label"):
        find_images(source, LABELS, None, True)
    source.write_bytes(b"\xff\xfe\x00,n1\n")
    with pytest.raises(CalibrationError, match="not a CSV file in UTF-8"):
        find_images(source, LABELS, None, True)


def test_a_whole_name_means_its_class_before_the_first_part_of_one() -> None:
    labels = Labels(("n0", "n1"), ("red", "red"), ("red, small", "red"), b"")
    assert class_lookup(labels, None)("red") == 1


def test_two_folders_of_one_name_are_refused_by_both(tmp_path: Path) -> None:
    both = [unicodedata.normalize(form, "Schröder") for form in ("NFC", "NFD")]
    touch(tmp_path, *(f"{name}/1.jpg" for name in both), "Cat/1.jpg", "cat/1.jpg")
    with pytest.raises(CalibrationError, match=r"'Schro\\u0308der' and 'Schr\\xf6der' are one name"):
        class_names(tmp_path)
    labels = Labels(("Cat", "cat", both[0]), ("Cat", "cat", both[0]), ("Cat", "cat", both[0]), b"")
    assert [one.class_number for one in find_images(tmp_path, labels, None, True).photographs] == [0, 2, 2, 1]
    shutil.rmtree(tmp_path / both[1])
    assert class_names(tmp_path) == ["Cat", both[0], "cat"]


@pytest.mark.parametrize(
    "files",
    [
        ["train/rose/1.jpg", "train/elm/1.jpg", "val/rose/1.jpg"],
        ["2023/rose/1.jpg", "2024/rose/1.jpg", "readme/notes.txt", "stray.jpg"],  # years of classes
        [
            "flowers/rose/1.jpg",
            "flowers/elm/deep/1.jpg",
            "__MACOSX/flowers/._rose",
        ],  # as an archive unpacks
        ["0/7/1.jpg", "1/7/1.jpg"],  # digits are classes, too
    ],
)
def test_classes_one_level_deeper_are_noticed(tmp_path: Path, files: list[str]) -> None:
    with pytest.raises(CalibrationError, match="one level deeper; give one of these") as raised:
        class_names(touch(tmp_path, *files))
    sets = sorted({name.split("/")[0] for name in files if "/" in name and name.endswith("jpg")})
    assert str(raised.value).endswith(", ".join(str(tmp_path / name) for name in sets))


@pytest.mark.parametrize(
    "files",
    [
        ["rose/1.jpg", "rose/old/1.jpg", "elm/old/1.jpg"],  # a class with images of its own
        ["rose/early/1.jpg", "elm/late/1.jpg"],  # inner folders of other names
        ["rose/2024-05-01/1.jpg", "elm/2024-05-01/1.jpg"],
        ["rose/20240501/1.jpg", "elm/20240501/1.jpg", "elm/20240502 rain/1.jpg"],
        ["rose/2024/05/1.jpg", "elm/2024/05/1.jpg"],
        ["rose/100CANON/1.jpg", "elm/100CANON/1.jpg", "elm/101_PANA/1.jpg"],  # as cameras name folders
        ["rose/notes/1.txt", "elm/notes/1.txt"],  # no images: a class without any is refused elsewhere
    ],
)
def test_classes_that_hold_folders_on_purpose_are_classes(tmp_path: Path, files: list[str]) -> None:
    assert class_names(touch(tmp_path, *files)) == ["elm", "rose"]


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
