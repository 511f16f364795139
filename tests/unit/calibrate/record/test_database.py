"""Which files are taken for a recording, and the workers that fill one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.record import workers
from jetsel.calibrate.record.database import Store, create_or_open, open_to_read
from jetsel.zoo import Family
from tests.unit.calibrate.record.making import change, family

OURS = family("xs", "s")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "recording.db"
    with Store(made, OURS, 4096):
        pass
    return made


def refused(path: Path, words: str, of: Family = OURS) -> None:
    with pytest.raises(CalibrationError, match=words):
        create_or_open(path, of, 4096)
    with pytest.raises(CalibrationError, match=words), open_to_read(path, of):
        pass


def test_it_is_one_plain_file_when_closed(path: Path) -> None:
    assert [entry.name for entry in path.parent.iterdir()] == ["recording.db"]
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        with open_to_read(path, OURS) as file:
            assert file.execute("SELECT 1 FROM models").fetchall() == []
    finally:
        path.parent.chmod(0o700)


def test_a_foreign_file_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("milk, bread, and more than a hundred bytes of other things to buy " * 4)
    refused(text, "is not a recording of jetsel; name another file")
    other = tmp_path / "other.db"
    change(other, "CREATE TABLE meta (id INTEGER)")
    before = other.read_bytes()
    refused(other, "is not a recording of jetsel; name another file")
    assert other.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["notes.txt", "other.db"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("version", "2", "is of format 2 and this jetsel reads 5; delete it"),
        ("version", "6", "is of format 6 and this jetsel reads 5; upgrade"),
        ("family", "pets", "for family 'pets', not 'starter'"),
        ("labels_sha256", "0", "with another labels file"),
        ("feature_table", "1", "with other features"),
        ("decode_px", "224", f"at most 224 pixels, but the family has {OURS.decode_px}"),
    ],
)
def test_what_is_bound_to_something_else_is_refused(path: Path, key: str, value: str, words: str) -> None:
    change(path, f"UPDATE meta SET value = '{value}' WHERE key = '{key}'")
    refused(path, words)


def test_features_of_another_size_go_into_another_file(path: Path) -> None:
    with pytest.raises(CalibrationError, match="with features of 4096 pixels, but 250000 are required"):
        create_or_open(path, OURS, 250_000)


def test_a_file_in_use_is_refused(path: Path) -> None:
    with Store(path, OURS, 4096):
        refused(path, "another process records into it; wait until it has ended")
    create_or_open(path, OURS, 4096).close()


def test_what_a_kill_in_the_first_moment_left_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "recording.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode=WAL")
    with pytest.raises(CalibrationError, match="is not a recording"), open_to_read(path, OURS):
        pass
    create_or_open(path, OURS, 4096).close()
    with open_to_read(path, OURS) as file:
        assert file.execute("SELECT 1 FROM photographs").fetchall() == []


def test_a_place_that_is_not_there_names_the_repair(tmp_path: Path) -> None:
    absent = tmp_path / "absent.db"
    with pytest.raises(CalibrationError, match="there is no recording"), open_to_read(absent, OURS):
        pass
    with pytest.raises(CalibrationError, match="cannot be opened; name a file in a folder that exists"):
        create_or_open(tmp_path / "absent" / "recording.db", OURS, 4096)


def test_outcomes_come_in_order_and_no_more_than_a_page_is_begun(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workers, "MOST_WAITING", 6)
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        return item * item

    with Store(tmp_path / "recording.db", family("xs"), 4096) as store:
        outcomes = workers.Workers(store, 3, workers.Observer()).work("recording", work, range(20))
        assert next(outcomes) == (0, 0)
        assert set(begun) <= set(range(6))
        assert list(outcomes) == [(item, item * item) for item in range(1, 20)]
