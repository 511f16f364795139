"""The page about Taylor et al. holds what its command wrote."""

from __future__ import annotations

from tests.unit.calibration.pages import PAPERS, ROOT, numbers_not_written, rows_not_written

RESULTS = sorted(PAPERS.glob("results/taylor-*.md"))


def test_every_row_of_the_page_stands_in_a_result_file() -> None:
    page = (PAPERS / "taylor.md").read_text(encoding="utf-8")
    results = page.partition("\n## The claims")[2]
    assert "|" in results
    assert rows_not_written(results, RESULTS) == []


def test_every_number_of_the_page_and_of_the_summary_in_docs_stands_in_a_result_file() -> None:
    page = (PAPERS / "taylor.md").read_text(encoding="utf-8")
    section = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").partition("## Taylor et al.")[2]
    section = section.partition("\n## ")[0]
    assert section
    assert numbers_not_written(page + section, RESULTS) == []
