"""Nothing that people read uses phrases that puzzle them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
