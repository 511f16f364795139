"""The files and classes that docs/architecture.md names exist, and the way of a calibration goes down."""

import re
from pathlib import Path

import jetsel
from tests.layers import read_imports

PACKAGE = Path(jetsel.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
MOST_FILES = 12  # from images to an installed calibration


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


def test_no_file_on_the_way_of_a_calibration_imports_one_above_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("## A calibration:") :].partition("\n## ")[0]
    way = re.findall(r"^\| `([a-z_0-9/]+)\.py` \|", section, re.MULTILINE)
    modules = [name.replace("/", ".") for name in way]
    imports = read_imports(PACKAGE)
    assert 0 < len(way) == section.count("\n| `") <= MOST_FILES
    assert [
        f"{module} imports {above}"
        for place, module in enumerate(modules)
        for above in modules[:place]
        if above in imports[module]
    ] == []
