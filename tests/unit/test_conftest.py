"""The suite's own rules hold: skips can be forbidden, and a test in a marked folder cannot be left unmarked."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    root: r\n    export: e\n    browser: b\n    board: g\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A tests folder of its own, with our conftest."""
    shutil.copy(CONFTEST, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('import pytest\ndef test_it():\n    pytest.skip("no torch here")\n', id="in a test"),
        pytest.param('import pytest\npytest.skip("no torch here", allow_module_level=True)\n', id="in a module"),
    ],
)
def test_a_skip_fails_only_where_it_is_forbidden(suite: Path, text: str) -> None:
    (suite / "test_skips.py").write_text(text)
    assert run_pytest(suite).returncode in (0, 5)
    forbidden = run_pytest(suite, "--forbid-skips")
    assert forbidden.returncode in (1, 2)
    assert "was skipped where every test must run: Skipped: no torch here" in forbidden.stdout


def test_an_expected_failure_is_no_skip(suite: Path) -> None:
    (suite / "test_x.py").write_text("import pytest\n@pytest.mark.xfail\ndef test_it():\n    assert False\n")
    done = run_pytest(suite, "--forbid-skips")
    assert done.returncode == 0
    assert "1 xfailed" in done.stdout


def test_a_marked_folder_marks_its_tests(suite: Path) -> None:
    for folder in ("export", "unit"):
        (suite / folder).mkdir()
        (suite / folder / f"test_{folder}.py").write_text("def test_it():\n    pass\n")
    assert "1 passed, 1 deselected" in run_pytest(suite, "-m", "export").stdout
    assert "1 passed, 1 deselected" in run_pytest(suite, "-m", "not export").stdout
