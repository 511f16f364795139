"""Labels are read in the order of the outputs, or refused by line; the files that people have become one such file."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo.labels import Labels, labels_file
from tests.unit.zoo.making import LABELS


def read(tmp_path: Path, text: str) -> Labels:
    path = tmp_path / "labels.tsv"
    path.write_bytes(text.encode("utf-8"))
    return Labels.read(path)


def test_two_classes_may_share_a_name_but_no_identifier(tmp_path: Path) -> None:
    assert read(tmp_path, "n02012849\tcrane\nn03126707\tcrane\n").names == ("crane", "crane")
    with pytest.raises(ManifestError, match=r"line 3: a is on line 1 already"):
        read(tmp_path, "a\tone\nb\ttwo\na\tthree\n")


def test_a_wrong_line_is_refused_by_number(tmp_path: Path) -> None:
    for text, line in (("a\tone\n\nb\ttwo\n", 2), ("a one\n", 1), ("a\tone\tmore\n", 1), ("a\t , one\n", 1)):
        with pytest.raises(ManifestError, match=rf"labels\.tsv, line {line}: .* is not an identifier"):
            read(tmp_path, text)


def test_no_labels_no_file_and_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no labels"):
        read(tmp_path, "")
    with pytest.raises(ManifestError, match=r"none\.tsv: cannot be read"):
        Labels.read(tmp_path / "none.tsv")
    (tmp_path / "labels.tsv").write_bytes(b"a\t\xe9t\xe9\n")
    with pytest.raises(ManifestError, match="not UTF-8 at byte 2"):
        Labels.read(tmp_path / "labels.tsv")


def labels(tmp_path: Path, content: str | bytes) -> Labels:
    path = tmp_path / "classes.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Labels.parse(labels_file(path), path)


def test_one_name_a_line_or_a_list_in_json(tmp_path: Path) -> None:
    found = labels(tmp_path, "tabby, tabby cat\r\n espresso\n\n")
    assert found.wnids == found.names == ("tabby", "espresso")
    assert found.synonyms == ("tabby, tabby cat", "espresso")
    assert labels(tmp_path, '\n["tabby", "espresso"]').names == ("tabby", "espresso")


@pytest.mark.slow
def test_half_a_million_classes_are_read(tmp_path: Path) -> None:
    assert len(labels(tmp_path, "\n".join(map(str, range(500_000)))).names) == 500_000


def test_a_labels_file_keeps_its_bytes_and_so_its_family(tmp_path: Path) -> None:
    assert labels(tmp_path, LABELS).sha256 == Labels.parse(LABELS.encode(), tmp_path).sha256
    assert labels(tmp_path, "\ufeff" + LABELS).wnids == ("n02123045", "n07920052")  # as Windows saves UTF-8


def test_classes_of_one_name_are_told_apart_by_their_number(tmp_path: Path) -> None:
    found = labels(tmp_path, "crane\ntabby\ncrane, bird\n")
    assert found.wnids == ("crane (0)", "tabby", "crane (2)")
    assert found.names == ("crane", "tabby", "crane")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("tabby\n\nespresso\n", "class 2: '' is not a name"),
        ("tabby\ncup\tespresso\n", "class 2"),
        ("", "no classes"),
        ('["tabby", 3]', "expected a JSON list of names"),
        ('["tabby"', "begins like a JSON list"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
    ],
)
def test_what_is_no_list_of_classes_is_refused(tmp_path: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(ManifestError, match=said) as raised:
        labels(tmp_path, content)
    assert "classes.txt" in str(raised.value)


def test_a_class_that_stands_twice_in_an_owners_list_is_refused(tmp_path: Path) -> None:
    for content in ("daisy\nrose\ndaisy\n", '["daisy", "rose", "daisy"]'):
        (tmp_path / "classes.txt").write_text(content)
        with pytest.raises(ManifestError, match=r"classes 1 and 3 are both 'daisy': give each a name of its own"):
            labels_file(tmp_path / "classes.txt")
