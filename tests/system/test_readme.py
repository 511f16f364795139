"""README.md says what is so: its program runs, its links lead somewhere, and its commands exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.system.daemons import Daemon, drawn, encoded

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """The names by which a document's headings are linked to: lower case, no punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: str) -> None:
    path = ROOT / document
    for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_program_in_the_readme_runs(shared_daemon: Daemon, tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    (tmp_path / "cat.jpg").write_bytes(encoded(drawn()))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "JETSEL_ENDPOINT": shared_daemon.endpoint},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("document", DOCUMENTS)
def test_extras_are_installed_beside_the_jetsel_that_is_there(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    known = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())["project"]["optional-dependencies"]
    for installed in re.findall(r"^pip install (.*?)(?:  +#.*)?$", text, re.MULTILINE):
        extras = re.fullmatch(r"'jetsel\[([a-z,]+)\]'", installed)
        assert extras is not None, installed
        assert set(extras[1].split(",")) <= set(known), installed


def test_the_environment_is_entered_before_the_first_command_that_needs_it() -> None:
    commands = re.findall(r"^(?:jetsel|pip|python|\. \.venv/bin/activate)\b.*$", TEXT, re.MULTILINE)
    assert commands[0].startswith(". .venv/bin/activate")


@pytest.mark.slow
def test_every_command_in_the_readme_exists() -> None:
    spans = re.findall(r"`([^`\n]+)`", TEXT) + re.findall(r"^(?:jetsel|make) .*$", TEXT, re.MULTILINE)
    commands = {words for span in spans if (words := span.split("#")[0].strip()).startswith(("jetsel ", "make "))}
    assert {"make demo", "make test", "jetsel serve"} <= commands
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for command in commands:
        program, first, *_ = command.split()
        if program == "make":
            assert first in targets, command
        elif not first.startswith("--"):
            done = subprocess.run(
                [sys.executable, "-m", "jetsel", first, "--help"], capture_output=True, timeout=60, check=False
            )
            assert done.returncode == 0, command
