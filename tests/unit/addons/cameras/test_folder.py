"""The newest picture of a folder, and one that is still being written."""

import os
import threading
from pathlib import Path

import pytest

from jetsel.addons.cameras import folder as module
from jetsel.addons.cameras.folder import Folder
from jetsel.addons.cameras.source import SourceGoneError
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


def test_a_broken_file_does_not_hide_a_whole_one_and_is_named_once_although_newer_images_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    folder = opened(tmp_path, told)
    write(tmp_path / "whole.png", 60)
    write(tmp_path / "broken.png", 70).write_bytes(b"no picture")
    assert folder.grab()
    assert width_of(folder) == 60
    assert not folder.grab()
    monkeypatch.setattr(module, "_UNFINISHED_S", 0.0)
    write(tmp_path / "newer.png", 80)
    assert folder.grab()
    until(lambda: folder.grab() or told)
    assert not folder.grab()
    assert [words.partition(" ")[0] for words in told] == ["broken.png"]


@pytest.mark.parametrize("times", [(3600, 0, 5, 2**40, 3601), (2**40, 7, 6, 5, 4)])
def test_what_was_not_there_at_the_last_look_is_new_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: tuple[int, ...]
) -> None:
    stamp_of, changed_s = module._stamp, dict(zip("abcde", times, strict=True))

    def by_another_clock(entry: os.DirEntry[str]) -> tuple[int, str, int, int, int] | None:
        stamp = stamp_of(entry)
        return None if stamp is None else (changed_s[entry.name[0]], *stamp[1:])

    monkeypatch.setattr(module, "_stamp", by_another_clock)
    folder = opened(tmp_path, [])
    for number, name in enumerate(changed_s):
        (tmp_path / f"{name}.png").write_bytes(encoded(drawn(width=60 + number), ".png"))
        assert folder.grab(), name
        assert width_of(folder) == 60 + number
        assert not folder.grab(), name


def test_other_files_are_not_looked_at_and_each_kind_that_a_person_may_mean_is_named_once(tmp_path: Path) -> None:
    for name in (".a.png", "b.png.part", "Thumbs.db", "c.HEIC", "d.heic", "e.gif", "notes"):
        (tmp_path / name).write_bytes(encoded(drawn(), ".png"))
    for name in ("@eaDir", "2026.jpg"):
        (tmp_path / name).mkdir()
    (tmp_path / "loop.png").symlink_to("loop.png")
    told: list[str] = []
    folder = opened(tmp_path, told)
    assert not folder.grab()
    (tmp_path / "f.heic").touch()
    assert not folder.grab()
    kinds = sorted(words.partition("as are all ")[2].partition(":")[0] for words in told)
    assert kinds == [".gif files", ".heic files", "files without a suffix", "subfolders"]
    (tmp_path / "last.png").write_bytes(encoded(drawn(), ".png"))
    assert folder.grab()


def test_a_folder_that_vanished_is_a_source_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(SourceGoneError, match="cannot be read"):
        opened(tmp_path / "nowhere", []).grab()
