"""Nothing that people read uses phrases that puzzle them, and names say what they are."""

from tests.names import MOST, long_classes, participles, shared_classes
from tests.texts import PUZZLING, ROOT


def test_code_and_documents_use_no_phrase_that_puzzles_readers() -> None:
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    paths += [path for kind in ("py", "html", "js") for path in (ROOT / "jetsel").rglob(f"*.{kind}")]
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in paths
        for match in PUZZLING.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_names_are_no_participles_and_no_two_public_classes_share_one() -> None:
    assert shared_classes() == {}
    assert long_classes() == {}
    assert len(participles()) <= MOST
