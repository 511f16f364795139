"""Reduced copies and boxes of images: recorded as the daemon would be sent them, and held out with their image."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import pytest

from jetsel import image
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.photographs import FoundImages, find_images
from jetsel.calibrate.record.recorder import record
from jetsel.engines import Engine
from jetsel.features import SIZE, extract
from tests.unit.calibrate.record.making import LABELS, QUICK, family, jpeg, put, rows, run

BOTH = family("xs", "s")
OPTIONS = dataclasses.replace(QUICK, plan=TimingPlan(images=6, repeats=1))
ROSE, DAISY = LABELS.wnids[0], LABELS.wnids[1]


def recorded(found: FoundImages, path: Path, engines: Mapping[str, Engine]) -> Path:
    assert record(path, BOTH, engines, found, OPTIONS)
    return path


def boxes(folder: Path, *lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "1.jpg").write_bytes(jpeg(1, 160, 120))
    file = folder / "boxes.csv"
    file.write_text("file,left,top,right,bottom,label\n" + "".join(f"{line}\n" for line in lines))
    return file


def test_each_image_is_recorded_in_every_smaller_size_too(tmp_path: Path, engines: Mapping[str, Engine]) -> None:
    found = find_images(put(tmp_path / "photos", 4), LABELS, None, True, sizes=(48, 400))
    path = recorded(found, tmp_path / "recording.db", engines)
    sizes = rows(path, "SELECT width_px, height_px, COUNT(*) FROM photographs GROUP BY 1, 2 ORDER BY 1")
    assert sizes == [(64, 48, 4), (96, 72, 4)]
    assert {reason for _, reason in rows(path, "SELECT path, reason FROM skipped")} == {
        "too small: its shorter side is not above 400 pixels"
    }
    loaded = load(path, BOTH).recording
    assert sorted(map(int, np.bincount(loaded.groups))) == [2, 2, 2, 2]  # an image and its copy are held out together
    file = Path(found.photographs[0].path)
    whole = image.decode(file.read_bytes(), OPTIONS.limits, 72)
    copy = cv2.resize(whole.bgr, (64, 48), interpolation=cv2.INTER_AREA)
    (features,) = rows(path, f"SELECT features FROM photographs WHERE path = '{file}' AND width_px = 64")[0]
    assert np.array_equal(np.frombuffer(features, "<f4"), extract(copy))
    assert loaded.feature(SIZE[0]).tolist().count(6) == 4


def test_a_detectors_boxes_are_cut_as_the_daemon_cuts_them(tmp_path: Path, engines: Mapping[str, Engine]) -> None:
    csv = boxes(tmp_path / "yard", f"1.jpg,0,0,0.5,0.5,{ROSE}", f"1.jpg,0.5,0.25,1,1,{DAISY}", f"1.jpg,{ROSE}")
    path = recorded(find_images(csv, LABELS, None, True), tmp_path / "recording.db", engines)
    known = rows(path, "SELECT label, width_px, height_px FROM photographs ORDER BY width_px, height_px")
    assert known == [(ROSE, 80, 60), (DAISY, 80, 90), (ROSE, 160, 120)]
    loaded = load(path, BOTH).recording
    assert set(loaded.groups) == {0}
    whole = image.decode((csv.parent / "1.jpg").read_bytes(), OPTIONS.limits, 120)
    cut = image.crop(whole, (0.5, 0.25, 0.5, 0.75), "shares")
    output = engines["s"].infer(image.model_input(cut, BOTH.models[1].manifest.input))
    (logits,) = rows(
        path,
        "SELECT logits FROM predictions JOIN photographs p ON p.id = photograph JOIN models m ON m.id = model"
        " WHERE height_px = 90 AND name = 's'",
    )[0]
    assert np.array_equal(np.frombuffer(logits, "<f2"), output.logits[0].astype(np.float16))


def test_the_same_call_again_records_nothing(tmp_path: Path, engines: Mapping[str, Engine]) -> None:
    found = find_images(put(tmp_path / "photos", 3), LABELS, None, True, sizes=(48,))
    path = recorded(found, tmp_path / "recording.db", engines)
    assert run(path, BOTH, engines, found, OPTIONS).due == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"1.jpg,0,0,0.5,0,{ROSE}", "line 2: 0,0,0.5,0 is no box: write left,top,right,bottom in shares"),
        (f"1.jpg,10,20,50,60,{ROSE}", "10,20,50,60 is no box"),
        (f"1.jpg,a,0,1,1,{ROSE}", "a,0,1,1 is no box"),
        (f"1.jpg,0,0,1,{ROSE}", "line 2: 5 columns instead of path,label"),
    ],
)
def test_a_line_that_is_no_box_is_named(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(CalibrationError, match=words):
        find_images(boxes(tmp_path / "yard", line), LABELS, None, True)


def test_one_box_with_two_labels_counts_not_at_all(tmp_path: Path, engines: Mapping[str, Engine]) -> None:
    csv = boxes(tmp_path / "yard", f"1.jpg,0,0,1,0.5,{ROSE}", f"1.jpg,0,0,1,0.5,{DAISY}", f"1.jpg,0,0.5,1,1,{DAISY}")
    path = recorded(find_images(csv, LABELS, None, True), tmp_path / "recording.db", engines)
    assert rows(path, "SELECT label, height_px FROM photographs") == [(DAISY, 60)]
    assert "contradictory" in rows(path, "SELECT reason FROM skipped")[0][0]
