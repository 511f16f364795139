"""A recording that is killed at any point ends as the one that nothing interrupted.

What a kill leaves is what lies in the files at that moment, so they are copied at many moments of one recording.
"""

import shutil
from pathlib import Path

import pytest

from jetsel.calibrate.record import database
from jetsel.calibrate.record.recorder import loaded_models, record
from jetsel.calibrate.record.workers import Observer
from tests.unit.calibrate.record.making import LABELS, TEN_TIMED, content, family, found, put, run

KILLS = 8
PHOTOGRAPHS = 60


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Sixty photographs, a duplicate, a contradiction and two files that cannot be read."""
    folder = put(tmp_path / "photos", PHOTOGRAPHS, width=320)
    first, second, third = (folder / LABELS.wnids[number] for number in range(3))
    shutil.copy(first / "000.jpg", first / "twice.jpg")
    shutil.copy(first / "003.jpg", second / "otherwise.jpg")
    (third / "text.jpg").write_text("no picture")
    (third / "cut.jpg").write_bytes((third / "002.jpg").read_bytes()[:-100])
    return folder


@pytest.mark.slow
def test_killed_recordings_end_as_one_that_was_not(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A transaction takes a second, and this recording hardly lasts one: here it takes 10 ms, so that moments fall
    # between transactions and inside them.
    monkeypatch.setattr(database, "COMMIT_EVERY_S", 0.01)
    path, left = tmp_path / "recording.db", list[Path]()

    def leave(*_: object) -> None:
        folder = tmp_path / f"{len(left)}"
        folder.mkdir()
        for file in tmp_path.glob(f"{path.name}*"):
            shutil.copy(file, folder)
        left.append(folder / path.name)

    both = family("xs", "s")
    with loaded_models(both) as engines:
        record(path, both, engines, found(photographs), TEN_TIMED, Observer(leave))
        whole = content(path)
        assert (len(whole["photographs"]), len(whole["predictions"]), len(whole["timed"])) == (59, 118, 20)
        assert len(whole["skipped"]) == 5
        resumed = []
        for killed in left[:: len(left) // KILLS]:
            done = run(killed, both, engines, found(photographs), TEN_TIMED)
            assert done.finished
            assert content(killed) == whole
            resumed.append(done.due)
    assert any(0 < recorded < 59 for recorded in resumed), "some were killed while photographs were recorded"
