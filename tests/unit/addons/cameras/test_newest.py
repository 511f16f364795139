"""One frame is kept, the newest, of a source that may go away; and the newest picture of a folder."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from jetsel.addons.cameras import folder as folder_module
from jetsel.addons.cameras import newest as module
from jetsel.addons.cameras.folder import Folder
from jetsel.addons.cameras.newest import Newest
from jetsel.addons.cameras.source import SourceGoneError
from jetsel.image import Limits
from tests.system.daemons import drawn, encoded
from tests.waiting import until


class Scripted:
    """A reader that does what is put on its queue: a number is a frame, an exception is raised."""

    def __init__(self) -> None:
        self.steps: queue.Queue[int | Exception] = queue.Queue()
        self.n_opened = self.n_closed = self.n_retrieved = 0
        self.now = 0

    def __call__(self, stop: threading.Event) -> Scripted:
        self.n_opened += 1
        return self

    def grab(self) -> bool:
        try:
            step = self.steps.get(timeout=0.01)
        except queue.Empty:
            return False
        if isinstance(step, Exception):
            raise step
        self.now = step
        return True

    def retrieve(self) -> np.ndarray:
        self.n_retrieved += 1
        return np.full((1, 1, 3), self.now, np.uint8)

    def close(self) -> None:
        self.n_closed += 1

    def show(self, newest: Newest, *frames: int) -> None:
        n_read = newest.n_read + len(frames)
        for frame in frames:
            self.steps.put(frame)
        until(lambda: newest.n_read == n_read and self.steps.empty())


Told = list[tuple[bool, str, float]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def camera() -> Scripted:
    return Scripted()


@pytest.fixture
def newest(camera: Scripted, told: Told) -> Iterator[Newest]:
    newest = Newest(camera, lambda *words: told.append(words))
    yield newest
    assert newest.close()
    assert camera.n_closed == camera.n_opened


def value(frame: np.ndarray | None) -> int | None:
    return None if frame is None else int(frame[0, 0, 0])


def test_the_newest_frame_is_taken_and_only_once(newest: Newest, camera: Scripted) -> None:
    camera.show(newest, 1, 2, 3)
    until(lambda: camera.n_retrieved == 3)
    camera.show(newest)
    assert until(lambda: value(newest.take_frame(10.0))) == 3
    assert newest.take_frame(0.0) is None


def test_a_source_that_goes_away_is_opened_again_after_growing_pauses(
    newest: Newest, camera: Scripted, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.03)
    camera.show(newest, 1)
    for _ in range(3):
        camera.steps.put(SourceGoneError("unplugged"))
    camera.show(newest, 2)
    camera.steps.put(SourceGoneError("unplugged"))
    until(lambda: len(told) == 6)
    assert told == [
        (True, "", 0.0),
        *((False, "unplugged", pause_s) for pause_s in (0.01, 0.02, 0.03)),
        (True, "", 0.0),
        (False, "unplugged", 0.01),
    ]
    assert newest.n_back == 1


@pytest.mark.parametrize("step", ["grab", "retrieve"])
def test_whatever_a_decoder_raises_the_source_is_away_and_opened_again(
    newest: Newest, camera: Scripted, told: Told, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)
    camera.show(newest, 1)
    with monkeypatch.context() as broken:
        if step == "retrieve":
            broken.setattr(camera, "retrieve", lambda: cv2.imdecode(np.zeros(0, np.uint8), 1))  # raises cv2.error
            camera.steps.put(2)
        else:
            camera.steps.put(MemoryError())
        until(lambda: len(told) == 2)
        assert told[1][0] is False
        assert ("MemoryError" if step == "grab" else "empty") in told[1][1]
        assert newest.take_frame(0.0) is None
    camera.show(newest, 3)
    until(lambda: len(told) == 3)
    assert told[2] == (True, "", 0.0)
    assert until(lambda: value(newest.take_frame(10.0))) == 3


def test_a_frame_that_is_given_back_is_the_newest_until_another_comes(newest: Newest, camera: Scripted) -> None:
    camera.show(newest, 1)
    for _ in range(2):
        frame = newest.take_frame(10.0, rest_s=3600.0)
        assert value(frame) == 1
        assert frame is not None
        newest.give_back(frame)
    camera.show(newest, 2)
    until(lambda: camera.n_retrieved == 2)
    newest.give_back(frame)
    assert value(newest.take_frame(10.0)) == 2


def test_the_frames_of_a_source_that_went_away_are_no_news(newest: Newest, camera: Scripted, told: Told) -> None:
    camera.show(newest, 1)
    frame = newest.take_frame(10.0)
    assert frame is not None
    camera.show(newest, 2)
    camera.steps.put(SourceGoneError("unplugged"))
    until(lambda: len(told) == 2)
    assert newest.take_frame(0.0) is None
    newest.give_back(frame)
    assert newest.take_frame(0.0) is None


def test_a_frame_that_was_being_made_when_another_was_taken_is_dropped(
    camera: Scripted, newest: Newest, monkeypatch: pytest.MonkeyPatch
) -> None:
    camera.show(newest, 1)
    is_made, go_on, made = threading.Event(), threading.Event(), camera.retrieve

    def slowly() -> np.ndarray:
        is_made.set()
        go_on.wait(60)
        return made()

    monkeypatch.setattr(camera, "retrieve", slowly)
    camera.steps.put(2)
    assert is_made.wait(60)
    assert newest.take_frame(60, rest_s=3600) is not None
    go_on.set()
    camera.show(newest, 3)  # it is read after the second was put, or dropped
    assert newest.take_frame(0) is None


LIMITS = Limits(10**6, 10**6)


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "_LOOK_S", 0.0)


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


@pytest.mark.usefixtures("_quick")
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
@pytest.mark.usefixtures("_quick")
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


@pytest.mark.usefixtures("_quick")
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
    monkeypatch.setattr(folder_module, "_UNFINISHED_S", 0.0)
    write(tmp_path / "newer.png", 80)
    assert folder.grab()
    until(lambda: folder.grab() or told)
    assert not folder.grab()
    assert [words.partition(" ")[0] for words in told] == ["broken.png"]


@pytest.mark.parametrize("times", [(3600, 0, 5, 2**40, 3601), (2**40, 7, 6, 5, 4)])
@pytest.mark.usefixtures("_quick")
def test_what_was_not_there_at_the_last_look_is_new_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: tuple[int, ...]
) -> None:
    stamp_of, changed_s = folder_module._stamp, dict(zip("abcde", times, strict=True))

    def by_another_clock(entry: os.DirEntry[str]) -> tuple[int, str, int, int, int] | None:
        stamp = stamp_of(entry)
        return None if stamp is None else (changed_s[entry.name[0]], *stamp[1:])

    monkeypatch.setattr(folder_module, "_stamp", by_another_clock)
    folder = opened(tmp_path, [])
    for number, name in enumerate(changed_s):
        (tmp_path / f"{name}.png").write_bytes(encoded(drawn(width=60 + number), ".png"))
        assert folder.grab(), name
        assert width_of(folder) == 60 + number
        assert not folder.grab(), name


@pytest.mark.usefixtures("_quick")
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


@pytest.mark.usefixtures("_quick")
def test_a_folder_that_vanished_is_a_source_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(SourceGoneError, match="cannot be read"):
        opened(tmp_path / "nowhere", []).grab()
