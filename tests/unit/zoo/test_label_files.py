"""The files in which people have their classes become a family's labels file."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.errors import ManifestError
from jetsel.zoo import Labels
from jetsel.zoo.label_files import labels_file
from tests.unit.zoo.making import LABELS


def labels(tmp_path: Path, content: str | bytes) -> Labels:
    path = tmp_path / "classes.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Labels.parse(labels_file(path), path)


def test_one_name_a_line_or_a_list_in_json(tmp_path: Path) -> None:
    found = labels(tmp_path, "tabby, tabby cat\r\n espresso\n\n")
    assert found.wnids == found.names == ("tabby", "espresso")
    assert found.synonyms == ("tabby, tabby cat", "espresso")
    assert labels(tmp_path, '\n["tabby", "espresso"]').names == ("tabby", "espresso")


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
        ("tabby\n\nespresso\n", "class 2: '' is no name"),
        ("tabby\ncup\tespresso\n", "class 2"),
        ("", "no classes"),
        ('["tabby", 3]', "a JSON list of names is due"),
        ('["tabby"', "begins as a JSON list and is none"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
    ],
)
def test_what_is_no_list_of_classes_is_refused(tmp_path: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(ManifestError, match=said) as raised:
        labels(tmp_path, content)
    assert "classes.txt" in str(raised.value)
