"""The benchmarks run end to end with tiny numbers, and what they measure with is right. No speed is asserted."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import NO_MOSEC
from benchmarks.servers import has_mosec
from jetsel.zoo import STARTER, scan
from tests.system.daemons import drawn, encoded

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def printed(*command: str, state: Path | None = None) -> str:
    """What a benchmark prints; it must succeed. state: the folder of models and calibrations of the machine."""
    environment = os.environ | ({} if state is None else {"STATE_DIRECTORY": str(state)})
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def rows(markdown: str) -> dict[str, list[str]]:
    """The rows of all tables, by their first column."""
    lines = [line.strip("| ").split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    return {name: values for name, *values in lines}


def test_one_command_measures_every_side_whatever_family_is_installed_here(tmp_path: Path) -> None:
    """The machine's own family, of one model called `only`, is not the one that is measured."""
    own = tmp_path / "models"
    own.mkdir()
    (own / "labels.tsv").write_text((STARTER / "labels.tsv").read_text().replace("\tgoldfish", "\tcarp", 1))
    shutil.copy(STARTER / "xs.onnx", own)
    manifest = json.loads((STARTER / "xs.json").read_text())
    (own / "only.json").write_text(json.dumps(manifest | {"name": "only", "family": "own"}))
    assert scan([own]).families.keys() == {"own"}
    arguments = ("--models", "xs", "--requests", "12", "--rounds", "1", "--clients", "1,3")
    text = printed("benchmarks", *arguments, state=tmp_path)
    found = rows(text)
    servers = ["daemon", "naive", "mosec"] if has_mosec() else ["daemon", "naive"]
    measured = [f"{server}, {clients}" for server in servers for clients in ("1 client", "3 clients")]
    for name in measured:
        assert all(float(value) > 0 for value in found[name]), name
    for server in servers[1:]:
        assert f"daemon, 3 clients: CPU a request / {server}'s" in found
    for name in ("bare, 1 thread", "bare, 2 threads"):
        assert all(float(value) > 0 for value in found[name][:-1]), name
    assert (NO_MOSEC in text) is not has_mosec()
    assert "scikit-image" in text


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("start --starts 1 --requests 2 --photos {photos}", "resident when ready and idle"),
        ("loading --rounds 1 --photos {photos}", "| load ms | run ms |"),
        ("hops --requests 2", "| locks taken |"),
        ("flood --peers 4 --seconds 0.5 --photos {photos}", "polite client in the flood: answered"),
        ("agreement {photos}", "\n4 files, 0 different: 0.00%"),
        ("hosted --runs 20 --requests 50 --kills 1", "From kill -9 under 8 clients"),
        ("energy --windows 2", "20 samples a second take"),
    ],
)
def test_each_other_benchmark_runs_to_its_end(tmp_path: Path, command: str, told: str) -> None:
    for seed in range(3):
        (tmp_path / f"{seed}.jpg").write_bytes(encoded(drawn(seed, 375, 500)))
    (tmp_path / "broken.jpg").write_bytes(encoded(drawn())[:500])
    assert told in printed(*f"benchmarks.{command}".format(photos=tmp_path).split())
