"""The list of texts holds what users see, and no docstring; nothing that people read uses phrases that puzzle them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.texts import ROOT, texts

SOURCE = '''"""A command. It is not shown."""
import typer

NOT_SHOWN = "name"
"""Nor is this note."""


def go(folder: Annotated[str, typer.Option(help="Folder of images.")]) -> None:
    """Read a folder."""
    if not folder:
        raise ConfigError(f"{folder}: there is no such folder")
    log.warning("slow: %s", folder)
    return "a reason of five words"
'''


def test_each_text_has_its_kind_and_line(tmp_path: Path) -> None:
    for name, source in {
        "jetsel/cli/go.py": SOURCE,
        "jetsel/page.html": '<p title="All images">{% if x %}Loading{% endif %}</p><script>let a = 1</script>',
        "jetsel/page.js": 'const a = "use strict"; show("no images yet");',
        "systemd/go.service": "[Unit]\nDescription=Go service\n",
        "pyproject.toml": '[project]\ndescription = "What it is"\n',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    assert [(str(one.path), one.line, one.kind, one.words) for one in texts(tmp_path)] == [
        ("jetsel/cli/go.py", 8, "help", "Folder of images."),
        ("jetsel/cli/go.py", 9, "help", "Read a folder."),
        ("jetsel/cli/go.py", 11, "error", "{folder}: there is no such folder"),
        ("jetsel/cli/go.py", 12, "log", "slow: %s"),
        ("jetsel/cli/go.py", 13, "text", "a reason of five words"),
        ("jetsel/page.html", 1, "page", "All images"),
        ("jetsel/page.html", 1, "page", "Loading"),
        ("jetsel/page.js", 1, "page", "no images yet"),
        ("pyproject.toml", 2, "package", "What it is"),
        ("systemd/go.service", 2, "package", "Go service"),
    ]


PUZZLING = re.compile(
    r"\b(whoever|so many(th)?|what is no|is told|hung up on|without a word|such a one|likewise"
    r"|(None|null|empty|Error) where)\b",
    re.IGNORECASE,
)


def test_code_and_documents_use_no_phrase_that_puzzles_readers() -> None:
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    paths += [path for kind in ("py", "html", "js") for path in (ROOT / "jetsel").rglob(f"*.{kind}")]
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in paths
        for match in PUZZLING.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()
