"""A recording that is killed with SIGKILL at any point ends as the one that nothing interrupted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jetsel.calibrate.record import loaded_models, record
from tests.unit.calibrate.record.making import LABELS, TEN_TIMED, content, family, found, put

KILLS = 8
PHOTOGRAPHS = 60
ROOT = Path(__file__).parents[2]

# A transaction takes a second, and this recording hardly lasts one: here it takes 10 ms, so that kills fall between
# transactions and inside them.
CHILD = """
import sys
from pathlib import Path
from jetsel.calibrate.record import loaded_models, progress, record, store
from tests.unit.calibrate.record.making import TEN_TIMED, family, found
store.COMMIT_EVERY_S = 0.01
progress.EVERY_S = 0.0
both = family("xs", "s")
photographs = found(Path(sys.argv[1]))
with loaded_models(both) as engines:
    print("begin", flush=True)
    record(Path(sys.argv[2]), both, engines, photographs, TEN_TIMED, lambda told: print(told, flush=True))
    print("end", flush=True)
"""
BOTH = family("xs", "s")


@pytest.fixture
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty photographs, a duplicate, a contradiction and two files that cannot be read."""
    folder = put(tmp_path_factory.mktemp("photos"), PHOTOGRAPHS, width=320)
    first, second, third = (folder / LABELS.wnids[number] for number in range(3))
    shutil.copy(first / "000.jpg", first / "twice.jpg")
    shutil.copy(first / "003.jpg", second / "otherwise.jpg")
    (third / "text.jpg").write_text("no picture")
    (third / "cut.jpg").write_bytes((third / "002.jpg").read_bytes()[:-100])
    return folder


def begin(photographs: Path, path: Path) -> subprocess.Popen[str]:
    """Start a process that records, and return when its models are loaded."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(photographs), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begin\n"
    return process


def killed(photographs: Path, path: Path, after: int) -> None:
    """Record, and kill the process after it has told so many times how far it is."""
    process = begin(photographs, path)
    assert process.stdout is not None
    for _ in range(after):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    assert process.wait(30) == -signal.SIGKILL


@pytest.mark.slow
def test_killed_recordings_end_as_one_that_was_not(photographs: Path, tmp_path: Path) -> None:
    process = begin(photographs, tmp_path / "whole.db")
    told = process.communicate()[0].splitlines()
    assert told.pop() == "end"
    whole = content(tmp_path / "whole.db")
    assert (len(whole["photographs"]), len(whole["predictions"]), len(whole["timed"])) == (59, 118, 20)
    assert len(whole["skipped"]) == 5
    resumed: list[int] = []
    with loaded_models(BOTH) as engines:
        for after in range(0, len(told), len(told) // KILLS):
            path = tmp_path / f"{after}.db"
            killed(photographs, path, after)
            done = record(path, BOTH, engines, found(photographs), TEN_TIMED)
            assert done.finished
            assert content(path) == whole
            resumed.append(done.recorded)
    assert any(0 < recorded < 59 for recorded in resumed), "some were killed while photographs were recorded"
