"""Doubtful pictures are kept where a calibration reads them, within a bound of bytes, and nothing is removed."""

from pathlib import Path

import cv2
import pytest

from jetsel.addons.cameras import saver as module
from jetsel.addons.cameras.saver import Saver
from jetsel.calibrate.record.photographs import find_images
from jetsel.zoo import Labels
from tests.system.daemons import drawn
from tests.unit.addons.cameras.answers import answer

FRAME = drawn()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PAUSE_S", "_LOOK_AGAIN_S"):
        monkeypatch.setattr(module, name, 0.0)


def kept(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.rglob("*.jpg"))


def test_only_doubtful_answers_are_kept(tmp_path: Path) -> None:
    saver = Saver(tmp_path / "new", 10**6, 0.5, print)
    for one in (answer("cat", 0.6), answer("dog", 0.4), answer("cow", 0.9, in_doubt=True)):
        saver.save_if_doubtful(FRAME, one)
    assert (kept(tmp_path / "new"), saver.n_saved) == (["cow", "dog"], 2)


def test_a_calibration_reads_what_is_kept_of_classes_of_any_name(tmp_path: Path) -> None:
    names = ["n02123045", "tabby cat", ".hidden", "a/b", "a_b", "x" * 300, "x" * 301, "\u00e9" * 300]
    told: list[str] = []
    saver = Saver(tmp_path, 10**6, 0.5, told.append)
    for name in (*names, "a\0b"):
        saver.save_if_doubtful(FRAME, answer(name, 0.1))
    labels = Labels.parse("".join(f"{name}\t{name}\n" for name in names).encode(), Path("labels.tsv"))
    found = find_images(tmp_path, labels, None, need_labels=True)
    assert sorted(one.class_number or 0 for one in found.photographs) == list(range(len(names)))
    assert (saver.n_saved, told) == (len(names) + 1, [])
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.jpg")} == {0o640}


def test_cameras_with_one_folder_share_its_bound(tmp_path: Path) -> None:
    size = len(cv2.imencode(".jpg", FRAME, module._JPEG)[1])
    savers = [Saver(folder, 3 * size, 0.5, print) for folder in (tmp_path / "kept", tmp_path / "x" / ".." / "kept")]
    for saver in (*savers, *savers):
        saver.save_if_doubtful(FRAME, answer("cat", 0.1))
    assert len(kept(tmp_path)) == 3


def test_a_full_folder_takes_no_more_says_so_once_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "others.bin").write_bytes(bytes(9_990))
    saver = Saver(tmp_path, 10_000, 0.5, told.append)
    for _ in range(3):
        saver.save_if_doubtful(FRAME, answer("cat", 0.1))
    assert kept(tmp_path) == []
    assert len(told) == 1
    assert "--save-mb" in told[0]
    (tmp_path / "others.bin").unlink()
    saver.save_if_doubtful(FRAME, answer("cat", 0.1))
    assert kept(tmp_path) == ["cat"]
    assert len(told) == 2
