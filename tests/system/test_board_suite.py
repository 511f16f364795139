"""The suite for real boards runs to its end: tried with a simulated one, and where there is none it says so."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from tests.board.report import Row
from tests.doubles.interpreter import make_interpreter

QUICK = "plans or shared_memory or int8 or SIGKILL or (latency and fp16-xs) or (starter and fp16-xs) or (hand and fp16)"
TOPICS = ("contract", "faults", "int8", "latency", "plans", "shared_memory", "starter")


def board_suite(python: Path, *options: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "board", "tests/board", *options]
    environment = {**os.environ, "JETSEL_BOARD_PYTHON": str(python), **settings}
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=250, check=False)


def test_it_passes_on_a_simulated_board_and_ends_with_the_figures(tmp_path: Path) -> None:
    python = make_interpreter(tmp_path / "interpreter", "8.6", board={"profile": "orin"})
    done = board_suite(python, "--forbid-skips", "-rp", "-k", QUICK, JETSEL_BOARD_ENGINES=str(tmp_path / "engines"))
    assert done.returncode == 0, done.stdout
    assert all(f"PASSED tests/board/test_{topic}.py::" in done.stdout for topic in TOPICS), done.stdout
    assert "- TensorRT: 8.6.0" in done.stdout
    assert "- gpu compute_capability: 8.7" in done.stdout
    assert "- shared memory: registered: read in place" in done.stdout
    (row,) = [line.strip("|").split("|") for line in done.stdout.splitlines() if line.startswith("| xs ")]
    cells = [cell.strip() for cell in row]
    assert cells[:2] == ["xs", "fp16"]
    assert len(cells) == len(fields(Row))
    memory = [field.name for field in fields(Row)].index("memory_mb")
    assert "unknown" not in cells[:memory] + cells[memory + 1 :], "only the memory's difference can drown in others'"
    assert list((tmp_path / "engines").glob("*.plan")), "engines stay where a folder was named"


def test_where_no_interpreter_sees_tensorrt_every_test_is_skipped_with_the_reason(tmp_path: Path) -> None:
    python = make_interpreter(tmp_path / "interpreter", None)
    skipped = board_suite(python, "-k", "plans")
    assert skipped.returncode == 0, skipped.stdout
    assert "passed" not in skipped.stdout
    assert "tensorrt is not installed for it" in " ".join(skipped.stdout.split())
    forbidden = board_suite(python, "-k", "plans", "--forbid-skips")
    assert forbidden.returncode == 1
    assert "no test was run: " in forbidden.stdout
