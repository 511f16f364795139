"""The examples as a newcomer runs them, against the running daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from jetsel.zoo import STARTER
from tests.system.daemons import Daemon, drawn

pytestmark = pytest.mark.slow

CAMERA = Path(__file__).parents[2] / "examples" / "camera.py"


def frames_of(path: Path) -> list[np.ndarray]:
    capture = cv2.VideoCapture(str(path))
    found = []
    while (read := capture.read())[0]:
        found.append(read[1])
    capture.release()
    return found


def film(path: Path, n_frames: int, frames_per_second: int) -> Path:
    """A video of pictures that stand still; `path` is an .avi file."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), frames_per_second, (320, 240))
    assert writer.isOpened()
    for _ in range(n_frames):
        writer.write(drawn(1, 240, 320))
    writer.release()
    return path


def camera(endpoint: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "JETSEL_ENDPOINT": endpoint, "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    return subprocess.Popen(
        [sys.executable, str(CAMERA), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def labels() -> set[str]:
    return {line.split("\t")[1].split(",")[0] for line in (STARTER / "labels.tsv").read_text().splitlines()}


def test_the_camera_draws_its_answers_and_drops_the_frames_that_it_has_no_time_for(
    shared_daemon: Daemon, tmp_path: Path
) -> None:
    video = film(tmp_path / "film.avi", 300, 900)
    drawn_into = tmp_path / "answers.avi"
    process = camera(shared_daemon.endpoint, str(video), "--output", str(drawn_into), "--deadline-ms", "20000")
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    *answers, dropped = said.splitlines()
    assert answers
    assert all(answer.rsplit(" ", 2)[0] in labels() for answer in answers), answers
    # Of 300 frames and the end's sign each was answered or dropped for a newer one; the sign itself is neither.
    assert len(answers) + int(dropped.split()[0]) == 300
    written = frames_of(drawn_into)
    assert len(written) == len(answers)
    before, after = frames_of(video)[0][:45], written[0][:45]  # where the text stands
    assert np.abs(before.astype(int) - after).max() > 100, "nothing was drawn"


@pytest.mark.parametrize(
    ("source", "said"), [("film.avi", "jetsel serve"), ("nowhere.avi", "cannot open")], ids=["no daemon", "no film"]
)
def test_the_camera_says_what_it_lacks(tmp_path: Path, source: str, said: str) -> None:
    film(tmp_path / "film.avi", 300, 5)  # longer than the client takes to begin
    process = camera(f"ipc://{tmp_path}/x.sock", str(tmp_path / source))
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert said in errors
    assert "Traceback" not in errors
