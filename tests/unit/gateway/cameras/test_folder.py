"""The newest picture of a folder, and one that is still being written."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from jetsel.gateway.cameras import source as module
from jetsel.gateway.cameras.source import Folder, SourceGoneError
from jetsel.image import Limits
from tests.system.daemons import drawn, encoded
from tests.waiting import until

LIMITS = Limits(10**6, 10**6)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.0)


def opened(path: Path, told: list[str]) -> Folder:
    return Folder(str(path), LIMITS, threading.Event(), told.append)


def width_of(folder: Folder) -> int:
    frame = folder.retrieve()
    assert frame is not None
    return frame.shape[1]


def write(path: Path, width: int) -> Path:
    """Write a picture that changed after all that lies beside it: a file system's clock ticks in milliseconds."""
    before = max((one.stat().st_ctime_ns for one in path.parent.iterdir()), default=0)
    until(lambda: path.write_bytes(encoded(drawn(width=width), ".png")) and path.stat().st_ctime_ns > before)
    return path


def test_the_picture_that_came_last_is_taken_once(tmp_path: Path) -> None:
    folder = opened(tmp_path, [])
    assert not folder.grab()
    write(tmp_path / "z.png", 60)
    write(tmp_path / "a.png", 70)
    assert folder.grab()
    assert width_of(folder) == 70
    assert not folder.grab()
    write(tmp_path / "a.png", 80)  # overwritten: a new one
    until(folder.grab)
    assert width_of(folder) == 80


def test_a_picture_that_is_moved_there_counts_from_then_on(tmp_path: Path) -> None:
    inside, aside = tmp_path / "in", tmp_path / "aside"
    inside.mkdir()
    aside.mkdir()
    old = write(aside / "old.png", 60)
    os.utime(old, (0, 0))
    new = write(inside / "new.png", 70)
    folder = opened(inside, [])
    assert folder.grab()
    until(lambda: (old.chmod(0o600), old.stat().st_ctime_ns > new.stat().st_ctime_ns)[1])
    old.rename(inside / "old.png")
    assert folder.grab()
    assert width_of(folder) == 60


@pytest.mark.parametrize("kind", [".jpg", ".png"])
def test_a_picture_that_is_being_written_is_waited_for(tmp_path: Path, kind: str) -> None:
    told: list[str] = []
    folder, whole = opened(tmp_path, told), encoded(drawn(), kind)
    path = tmp_path / f"one{kind}"
    for share in (0.0, 0.3, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        assert not folder.grab()
    path.write_bytes(whole)
    assert folder.grab()
    assert width_of(folder) == 160
    assert told == []


def test_what_stays_unreadable_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_UNFINISHED_S", 0.0)
    told: list[str] = []
    folder = opened(tmp_path, told)
    (tmp_path / "bad.png").write_bytes(b"no picture")
    until(lambda: folder.grab() or told)
    assert not folder.grab()
    assert len(told) == 1
    assert "bad.png" in told[0]


def test_a_broken_file_does_not_hide_a_whole_one_that_came_just_before(tmp_path: Path) -> None:
    folder = opened(tmp_path, [])
    write(tmp_path / "whole.png", 60)
    write(tmp_path / "broken.png", 70).write_bytes(b"no picture")
    assert folder.grab()
    assert width_of(folder) == 60
    assert not folder.grab()


def test_a_broken_file_is_named_although_newer_images_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_UNFINISHED_S", 0.0)
    told: list[str] = []
    folder = opened(tmp_path, told)
    write(tmp_path / "broken.png", 60).write_bytes(b"no picture")
    assert not folder.grab()
    write(tmp_path / "whole.png", 70)
    assert folder.grab()
    until(lambda: folder.grab() or told)
    assert len(told) == 1
    assert "broken.png" in told[0]


def test_other_files_are_not_looked_at(tmp_path: Path) -> None:
    for name in (".a.png", "notes.txt", "b.png.part"):
        (tmp_path / name).write_bytes(encoded(drawn(), ".png"))
    assert not opened(tmp_path, []).grab()


def test_a_folder_that_vanished_is_a_source_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(SourceGoneError, match="cannot be read"):
        opened(tmp_path / "nowhere", []).grab()
