"""Which files are taken for a recording: only whole ones of ours, of this family, these features and this version."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jetsel.calibrate.record import schema
from jetsel.calibrate.record.schema import create_or_open, open_to_read
from jetsel.calibrate.record.store import Store
from jetsel.errors import CalibrationError
from tests.unit.calibrate.record.making import LABELS, STARTER_FAMILY, family

OURS = family("xs", "s")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "recording.db"
    with Store(made, OURS):
        pass
    return made


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement)


def refused(path: Path, words: str, of: object = OURS) -> None:
    for opened in (create_or_open, open_to_read):
        with pytest.raises(CalibrationError, match=words):
            opened(path, of)  # type: ignore[operator]


def test_it_is_one_plain_file_when_closed(path: Path) -> None:
    assert [entry.name for entry in path.parent.iterdir()] == ["recording.db"]
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        open_to_read(path, OURS).close()
    finally:
        path.parent.chmod(0o700)


def test_a_foreign_file_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("milk, bread, and more than a hundred bytes of other things to buy " * 4)
    refused(text, "is no recording of jetsel; name another file")
    other = tmp_path / "other.db"
    change(other, "CREATE TABLE meta (id INTEGER)")
    before = other.read_bytes()
    refused(other, "is no recording of jetsel; name another file")
    assert other.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["notes.txt", "other.db"]


def test_another_version_is_refused(path: Path) -> None:
    change(path, "UPDATE meta SET value = '3' WHERE key = 'version'")
    refused(path, "is of format 3 and this jetsel reads 2")


def test_another_family_or_other_labels_are_refused(path: Path) -> None:
    refused(path, "of the family 'starter' and this one is 'pets'", dataclasses.replace(OURS, name="pets"))
    labels = dataclasses.replace(LABELS, sha256="0" * 64)
    refused(path, "with another labels file of the family; record into", dataclasses.replace(OURS, labels=labels))


def test_another_feature_table_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "table_hash", lambda: "1" * 64)
    refused(path, "with other features than this jetsel computes; record into another file")


def test_other_input_sizes_are_refused(path: Path) -> None:
    change(path, "UPDATE meta SET value = '224' WHERE key = 'decode_px'")
    refused(path, f"at most 224 pixels where the family has {STARTER_FAMILY.decode_px}; record into another file")


def test_a_file_in_use_is_refused(path: Path) -> None:
    with Store(path, OURS):
        refused(path, "another process records into it; wait until it has ended")
    create_or_open(path, OURS).close()


def test_what_a_kill_in_the_first_moment_left_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "recording.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode=WAL")
    with pytest.raises(CalibrationError, match="is no recording"):
        open_to_read(path, OURS)
    create_or_open(path, OURS).close()
    open_to_read(path, OURS).close()


def test_a_place_that_is_not_there_names_the_repair(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="there is no recording; record photographs first"):
        open_to_read(tmp_path / "absent.db", OURS)
    with pytest.raises(CalibrationError, match="cannot be opened; name a file in a folder that exists"):
        create_or_open(tmp_path / "absent" / "recording.db", OURS)
