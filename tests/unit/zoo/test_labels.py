"""Labels are read in the order of the outputs, or refused by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.errors import ManifestError
from jetsel.zoo import Labels


def read(tmp_path: Path, text: str) -> Labels:
    path = tmp_path / "labels.tsv"
    path.write_bytes(text.encode("utf-8"))
    return Labels.read(path)


def test_two_classes_may_share_a_name_but_no_identifier(tmp_path: Path) -> None:
    assert read(tmp_path, "n02012849\tcrane\nn03126707\tcrane\n").names == ("crane", "crane")
    with pytest.raises(ManifestError, match=r"line 3: a stands on line 1 already"):
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
