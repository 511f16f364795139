"""Figures on the pages about the papers stand in a result file of that paper, or are the paper's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "calibration" / "papers"
PAGES = sorted(PAPERS.glob("RESULTS-*.md"))
RESULTS = ("results/{page}-*", "{page}/results/*")
"""Result files of a page, below calibration/papers."""

THEIRS = ("paper", "thesis", "claim")  # in a column's heading: it holds the paper's figures
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
REFERENCE = re.compile(r"(?:Figures?|Tables?|[Ss]ections?) \d[\d.]*(?:(?:,| and| to) \d[\d.]*)*|\d\.\d\.\d")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
MEASURED = re.compile(r"(?<![\w.,])(?:\d[\d,]*\.\d+|\d[\d,]*(?= ?%| (?:ms|s|MB|points|times)\b))")
"""What a page has to prove: decimals, and numbers with a unit."""
CONSTANTS = {"95"}  # % of an interval


def paper(page: Path) -> str:
    """The name of the paper whose results a page has: of one or of several, as RESULTS-taylor-mixes.md is."""
    return page.stem.removeprefix("RESULTS-").partition("-")[0]


def sections() -> Iterator[tuple[str, str]]:
    """Yield each section of docs/papers.md that links to a page of results, after that page's name."""
    for section in (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        if page := re.search(r"\(\.\./calibration/papers/RESULTS-(\w+)\.md\)", section):
            yield page[1], section.partition("\n")[2]


TEXTS = {path.name: (paper(path), path.read_text(encoding="utf-8")) for path in PAGES}
TEXTS |= {f"docs/papers.md, {page}": (page, section) for page, section in sections()}


def unproved(page: str, text: str) -> list[str]:
    """Return the figures of a text that are in no result file of its page and in no column of the paper's."""
    files = [path for pattern in RESULTS for path in PAPERS.glob(pattern.format(page=page))]
    written = "\n".join(path.read_text(encoding="utf-8") for path in files)
    theirs = "\n".join(theirs for _, _, theirs in rows((PAPERS / f"RESULTS-{page}.md").read_text(encoding="utf-8")))
    known = CONSTANTS | {plain(number) for number in NUMBER.findall(f"{written}\n{theirs}")}
    lines = set(written.splitlines())
    ours = [cells for line, cells, _ in rows(text) if line not in lines]
    prose = [line for line in text.splitlines() if not line.startswith(("|", "#"))]
    found = MEASURED.findall(REFERENCE.sub(" ", CODE.sub(" ", "\n".join([*ours, *prose]))))
    return [number for number in found if plain(number) not in known]


def rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each row of a text's tables: the line, its cells that are ours, and those that are the paper's."""
    columns: list[bool] = []
    before = ""
    for line in text.splitlines():
        cells = line.strip("|").split("|")
        if line.startswith("|") and not before.startswith("|"):
            columns = [any(word in cell for word in THEIRS) for cell in cells]
        elif line.startswith("|"):
            both = list(zip(cells, columns, strict=True))
            yield line, *("|".join(cell for cell, theirs in both if theirs is wanted) for wanted in (False, True))
        before = line


def plain(number: str) -> str:
    """Return a number without its commas."""
    return number.replace(",", "")


@pytest.mark.parametrize("name", TEXTS)
def test_every_figure_stands_in_a_result_file_or_is_the_papers_own(name: str) -> None:
    assert unproved(*TEXTS[name]) == []


def test_no_page_is_longer_than_150_lines() -> None:
    assert {page.name for page in PAGES if len(page.read_text("utf-8").splitlines()) > 150} == set()


def test_each_page_has_its_section_and_a_wrong_figure_is_found() -> None:
    assert {page for page, _ in sections()} == {paper(path) for path in PAGES}
    page = (PAPERS / "RESULTS-multiplexer.md").read_text(encoding="utf-8")
    assert unproved("multiplexer", page.replace("54.6 % (52.6", "54.7 % (52.6")) == ["54.7"]
    assert unproved("multiplexer", "It keeps 77.7 % of them.") == ["77.7"]
