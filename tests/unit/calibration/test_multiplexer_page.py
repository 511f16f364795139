"""The page about the multiplexer holds what its command wrote."""

from __future__ import annotations

from tests.unit.calibration.pages import PAPERS, ROOT, rows_not_written


def test_every_row_of_the_page_stands_in_a_result_file() -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    section = page.partition("## Eshratifar and Pedram, Run-time")[2].partition("\n## ")[0]
    assert "|" in section
    assert rows_not_written(section, PAPERS.glob("multiplexer/results/*.md")) == []
