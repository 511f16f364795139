"""Tables on the pages about the papers have the cells of their result files, and other figures stand in one of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.papers import pages
from calibration.papers.pages import ROOT, by_hand, rewritten
from calibration.papers.tables import head

PAPERS = ROOT / "calibration" / "papers"
PAGES = sorted(PAPERS.glob("RESULTS-*.md"))
WRITTEN = "<!-- owners -->"  # a table that another command writes: calibration/tests/test_owners.py
RESULTS = "results/{page}-*"
"""Result files of a page, below calibration/papers."""

THEIRS = ("paper", "thesis", "claim")  # in a column's heading: it holds the paper's figures
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
REFERENCE = re.compile(
    r"(?:Figures?|Tables?|[Ss]ections?) \d[\d.]*(?:(?:,| and| to) \d[\d.]*)*|\d\.\d\.\d|\(\d\.\d(?:, [\d.]+)*\)"
)
ABROAD = re.compile(r"[Tt]he paper: (?:[^.;)]|\.\d)*")
"""What a sentence has from the paper."""
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
    files = list(PAPERS.glob(RESULTS.format(page=page)))
    written = "\n".join(path.read_text(encoding="utf-8") for path in files)
    theirs = "\n".join(theirs for _, _, theirs in rows((PAPERS / f"RESULTS-{page}.md").read_text(encoding="utf-8")))
    known = CONSTANTS | {plain(number) for number in NUMBER.findall(f"{written}\n{theirs}")}
    lines = set(written.splitlines())
    ours = [cells for line, cells, _ in rows(text) if line not in lines]
    prose = [line for line in text.splitlines() if not line.startswith(("|", "#"))]
    found = MEASURED.findall(REFERENCE.sub(" ", ABROAD.sub(" ", CODE.sub(" ", "\n".join([*ours, *prose])))))
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


def unwritten(text: str) -> list[str]:
    """Return the figures of a text's tables that no result file writes, but for columns of the paper's."""
    return [
        number
        for heading, cell in by_hand(text)
        if not any(word in heading for word in THEIRS)
        for number in MEASURED.findall(REFERENCE.sub(" ", CODE.sub(" ", cell)))
    ]


def plain(number: str) -> str:
    """Return a number without its commas."""
    return number.replace(",", "")


@pytest.mark.parametrize("name", TEXTS)
def test_every_figure_stands_in_a_result_file_or_is_the_papers_own(name: str) -> None:
    assert unproved(*TEXTS[name]) == []


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_every_table_of_figures_is_what_its_result_file_has(page: Path) -> None:
    before, _, after = page.read_text(encoding="utf-8").partition(WRITTEN)
    text = before + after.partition(WRITTEN.replace(" ", " /", 1))[2]
    assert rewritten(text) == text, "python -m calibration.papers.pages writes it"
    assert unwritten(text) == []


def test_two_cells_that_are_swapped_and_a_row_that_is_gone_are_found() -> None:
    file = "<!-- table: calibration/papers/results/taylor-mixes-starter.md -->\n\n"
    page = f"{file}| way | the paper | right % |\n|---|---|---|\n"
    whole = rewritten(page)
    assert whole.count("\n") > 10
    first, second = whole.splitlines()[4:6]
    assert rewritten(whole) == whole
    swapped = f"{page}| {first.split('|')[1]} | 7.5 | {second.split('|')[3]} |\n"
    assert rewritten(swapped) == f"{page}{first.replace('|  |', '| 7.5 |')}\n"
    with pytest.raises(ValueError, match="has no row"):
        rewritten(f"{page}| no such way | | 1.0 |\n")
    assert unwritten("| here | the paper |\n|---|---|\n| 7.7 % | 8.8 % |\n") == ["7.7"]
    assert unwritten(f"{page.replace('right', 'wrong')}| {first.split('|')[1]} | 7.5 | 6.6 |\n") == ["6.6"]


def test_a_result_file_names_its_command_and_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["", "/photos/FIT", "--part", "two words"])
    commit = r"at commit [0-9a-f]{8}(, changed since)?\. "
    assert re.fullmatch(rf"Written by `python -m \S+ FIT --part 'two words'` {commit}Half\.", head("Half."))
    papers = {paper(page) for page in PAGES}
    files = [path for one in papers for path in PAPERS.glob(RESULTS.format(page=one))]
    assert len(files) > 10
    assert [path.name for path in files if not re.search(r"at commit [0-9a-f]{8}", path.read_text("utf-8"))] == []


def test_no_page_is_longer_than_150_lines() -> None:
    assert {page.name for page in PAGES if len(page.read_text("utf-8").splitlines()) > 150} == set()


def test_each_page_has_its_section_and_a_wrong_figure_is_found() -> None:
    assert {page for page, _ in sections()} == {paper(path) for path in PAGES}
    page = (PAPERS / "RESULTS-multiplexer.md").read_text(encoding="utf-8")
    assert unproved("multiplexer", page.replace("66.08 % beside", "66.07 % beside")) == ["66.07"]
    assert unproved("multiplexer", "It keeps 77.7 % of them.") == ["77.7"]
