"""README.md says what is so: its program runs, and its links lead somewhere."""

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
        if installed == ".":  # in a clone
            continue
        extras = re.fullmatch(r"'jetsel\[([a-z,]+)\]'", installed)
        assert extras is not None, installed
        assert set(extras[1].split(",")) <= set(known), installed


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if name != "CHANGELOG.md"])
def test_every_target_of_make_in_the_documents_exists(document: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = (ROOT / document).read_text(encoding="utf-8")
    assert set(re.findall(r"(?:^|`)make (?:[A-Z]\S* )*([a-z-]+)", text, re.MULTILINE)) <= set(targets)


def test_every_page_is_reached_from_the_readme_in_two_clicks() -> None:
    def linked(document: str) -> set[str]:
        path = ROOT / document
        links = re.findall(r"\]\(([^)#:]+\.md)[^)]*\)", path.read_text(encoding="utf-8"))
        return {os.path.relpath((path.parent / link).resolve(), ROOT) for link in links}

    first = linked("README.md")
    reached = first.union(*(linked(document) for document in first))
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    assert pages <= reached


def test_the_documents_are_no_longer_than_their_readers_have_patience() -> None:
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in (ROOT / "docs").glob("*.md")}
    lengths = {name: count for name, count in lines.items() if count > (250 if name == "protocol.md" else 200)}
    assert lengths == {}
    assert sum(lines.values()) <= 3050
