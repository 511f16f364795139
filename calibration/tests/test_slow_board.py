"""The stand-in for a slow board: what a command's lines divide, and what the runs of a recording take."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from calibration.slow_board import run, runs_s

PRINTED = [sys.executable, "-c", "print('reading the files'); print('timing the models: 1 of 2')"]


def test_each_line_that_ends_a_step_is_a_moment_and_so_is_the_end() -> None:
    moments = run(PRINTED, ["reading", "timing"])
    assert len(moments) == 3
    assert moments == sorted(moments)


def test_a_command_that_prints_other_lines_is_refused() -> None:
    with pytest.raises(SystemExit, match="printed other lines"):
        run(PRINTED, ["timing", "reading"])


def test_the_runs_take_each_model_s_mean_time_for_each_of_its_images(tmp_path: Path) -> None:
    recording = tmp_path / "recording.sqlite"
    with closing(sqlite3.connect(recording)) as connection:
        connection.executescript(
            "CREATE TABLE photographs (id); CREATE TABLE predictions (model); CREATE TABLE timings (model, median_ms);"
            "INSERT INTO photographs VALUES (1), (2), (3); INSERT INTO predictions VALUES (1), (1), (1), (2), (2), (3);"
            "INSERT INTO timings VALUES (1, 100), (1, 300), (2, 700)"
        )
    assert runs_s(recording) == (3, 2, pytest.approx(3 * 0.2 + 2 * 0.7))
