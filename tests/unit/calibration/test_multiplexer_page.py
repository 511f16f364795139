"""The page about the multiplexer holds what its command wrote."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "calibration" / "papers" / "multiplexer" / "results"


def test_every_row_of_the_page_stands_in_a_result_file() -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    section = page.partition("## Eshratifar and Pedram, Run-time")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    written = {line for path in RESULTS.glob("*.md") for line in path.read_text(encoding="utf-8").splitlines()}
    assert rows
    assert [row for row in rows if row not in written] == []
