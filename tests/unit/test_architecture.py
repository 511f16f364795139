"""The files and classes that docs/architecture.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

import jetsel

PACKAGE = Path(jetsel.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"


def test_every_file_and_class_of_the_page_exists() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    missing, files = [], 0
    for row in re.findall(r"^\|.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        folder = PACKAGE
        for name in re.findall(r"`([a-z_0-9/]+(?:\.py|/))`", row):
            files += 1
            path = PACKAGE / name if (PACKAGE / name).exists() else folder / name
            folder = path.parent
            missing += [] if path.exists() else [name]
        names = re.findall(r"`([A-Z][A-Za-z]+)`", row)
        missing += [name for name in names if not re.search(rf"^class {name}\b", source, re.MULTILINE)]
    assert missing == []
    assert files > 60
