"""The benchmarks run end to end with tiny numbers, and what they measure with is right. No speed is asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import NO_MOSEC
from benchmarks.servers import has_mosec
from tests.system.daemons import drawn, encoded

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def printed(*command: str) -> str:
    """What a benchmark prints; it must succeed."""
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def rows(markdown: str) -> dict[str, list[str]]:
    """The rows of all tables, by their first column."""
    lines = [line.strip("| ").split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    return {name: values for name, *values in lines}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three photographs, drawn."""
    for seed in range(3):
        (tmp_path / f"{seed}.jpg").write_bytes(encoded(drawn(seed, 375, 500)))
    return tmp_path


def test_one_command_measures_every_side() -> None:
    text = printed("benchmarks", "--models", "xs", "--requests", "12", "--rounds", "1", "--clients", "1,3")
    found = rows(text)
    servers = ["daemon", "naive", "mosec"] if has_mosec() else ["daemon", "naive"]
    measured = [f"{server}, {clients}" for server in servers for clients in ("1 client", "3 clients")]
    for name in measured:
        assert all(float(value) > 0 for value in found[name]), name
        assert f"{name}: CPU a request / the bare loop's" in found
    for name in ("bare, 1 thread", "bare, 2 threads"):
        assert all(float(value) > 0 for value in found[name][:-1]), name
    assert f"{measured[1]}: requests/s / the bare loop's on 2 threads" in found
    assert (NO_MOSEC in text) is not has_mosec()
    assert "scikit-image" in text


def test_start_tells_times_and_memory(folder: Path) -> None:
    found = rows(printed("benchmarks.start", "--starts", "1", "--requests", "2", "--photos", str(folder)))
    values = {name: float(figures[-1]) for name, figures in found.items() if name != "what"}
    assert values["ready, median of the starts, s"] > 0
    resident = values["resident when ready and idle (VmRSS), MB"]
    assert 20 < resident <= values["most it ever held (VmHWM), MB"]


def test_a_polite_client_is_answered_in_a_flood(folder: Path) -> None:
    found = rows(printed("benchmarks.flood", "--peers", "4", "--seconds", "0.5", "--photos", str(folder)))
    for column in (0, 1):
        assert int(found["requests that the peers' sockets took"][column]) > 0
        assert int(found["polite client in the flood: answered"][column]) > 0
        assert found["polite client in the flood: given up"][column] == "none"
        peak, idle = (float(found[name][column]) for name in ("**most resident (VmHWM), MB**", "resident before, MB"))
        assert peak >= idle
    assert "16 MB each" in found["what"][1]


def test_the_daemon_agrees_with_its_parts_on_good_and_bad_files(folder: Path) -> None:
    (folder / "broken.jpg").write_bytes(encoded(drawn())[:500])
    assert "\n4 files, 0 different: 0.00%" in printed("benchmarks.agreement", str(folder))


def test_the_engine_host_is_measured_beside_a_run_in_process() -> None:
    text = printed("benchmarks.hosted", "--runs", "20", "--requests", "50", "--kills", "1")
    found = rows(text)
    for side in ("in process", "hosted", "a ping"):
        assert all(float(value) > 0 for value in found[side]), side
    added = [float(value) for value in found["added by hosting"]]
    sides = zip(found["hosted"], found["in process"], strict=True)
    assert added == pytest.approx([float(hosted) - float(plain) for hosted, plain in sides], abs=0.002)
    for process in ("daemon's side", "host"):
        assert float(found[process][0]) > 10, "megabytes"
    assert "From kill -9 under 8 clients" in text


def test_energies_are_computed_beside_the_truth() -> None:
    text = printed("benchmarks.energy", "--windows", "2")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| constant |")]
    known = [float(cell.removesuffix(" %")) for line in lines for cell in (line[4], line[7]) if cell != "-"]
    assert known
    assert max(known) <= 100 * 0.152 / 2 / 5 + 0.1, "half a step of the sensor, of 5 W above idle"
    assert "20 samples a second take" in text
