"""Writes the tables of the pages about the papers from result files: `python -m calibration.papers.pages`.

A comment stands before each: `<!-- table: FILE -->`, or `<!-- table: FILE, WORDS -->` with words of the title, if the
file has several tables. FILE is relative to the repository. The page's table chooses columns of the file's by their
headings, and rows by their first cells, as many as tell the file's rows apart; without rows it gets all of them.
Columns that the file does not have are kept as they are: the paper's own figures, and words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "papers.md", *sorted(HERE.glob("RESULTS-*.md")))
TABLE = re.compile(
    r"(?:<!-- table: (?P<file>[^,\n]+?)(?:, (?P<words>.+?))? -->\n\n?)?(?P<head>\|.*\n\|.*\n)(?P<rows>(?:\|.*\n)*)"
)

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Headings, each with the number of equal ones before it, and rows of as many cells."""

    headings: tuple[tuple[str, int], ...]
    rows: tuple[Cells, ...]

    def of(self, headings: Sequence[tuple[str, int]]) -> list[Cells]:
        """Return some columns; an empty first cell repeats the one above. Raises ValueError if one is not there."""
        if missing := [words for words, number in headings if (words, number) not in self.headings]:
            raise ValueError(f"a table has no column {missing[0]!r}: it tells the rows apart")
        places = [self.headings.index(heading) for heading in headings]
        chosen: list[Cells] = []
        for row in self.rows:
            first, *rest = [row[place] for place in places]
            chosen.append((first or (chosen[-1][0] if chosen else ""), *rest))
        return chosen


def by_hand(text: str) -> Iterator[tuple[str, str]]:
    """Yield each cell of a page's tables that no result file writes, after its heading."""
    for found in TABLE.finditer(text):
        page, source = _table(found), _source(found["file"], found["words"] or "") if found["file"] else None
        for row in page.rows:
            for heading, cell in zip(page.headings, row, strict=True):
                if source is None or heading not in source.headings:
                    yield heading[0], cell


def rewritten(text: str) -> str:
    """Return a page with its tables as the result files have them. Raises ValueError, which names what they lack."""
    return TABLE.sub(lambda found: _written(found) if found["file"] else found[0], text)


def _table(found: re.Match[str]) -> Table:
    first, *rows = [_cells(line) for line in (found["head"].splitlines()[0], *found["rows"].splitlines())]
    if wrong := [row for row in rows if len(row) != len(first)]:
        raise ValueError(f"the row {wrong[0]} does not fit the headings {first}")
    headings = tuple((cell, first[:place].count(cell)) for place, cell in enumerate(first))
    return Table(headings, tuple(rows))


def _written(found: re.Match[str]) -> str:
    """Return one table of a page, with the cells of its result file."""
    page, source = _table(found), _source(found["file"], found["words"] or "")
    key = _key(source)
    known = dict(zip(source.of(key), source.rows, strict=True))
    keys = page.of(key) or list(known)
    if gone := [one for one in keys if one not in known]:
        raise ValueError(f"{found['file']} has no row {gone[0]}; it has {list(known)}")
    lines = []
    for one, row in zip(keys, page.rows or [("",) * len(page.headings)] * len(keys), strict=True):
        cells = dict(zip(page.headings, row, strict=True))
        theirs = dict(zip(source.headings, known[one], strict=True))
        lines.append(f"| {' | '.join((cells | {name: theirs[name] for name in cells if name in theirs}).values())} |\n")
    return found[0].removesuffix(found["rows"]) + "".join(lines)


def _source(file: str, words: str) -> Table:
    """Return the one table of a result file whose title has these words."""
    parts = re.split(r"^## ", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [_table(one) for part in parts if words in part.partition("\n")[0] for one in TABLE.finditer(part)]
    if len(found) != 1:
        raise ValueError(f"{file} has {len(found)} tables with {words!r} in their title")
    return found[0]


def _key(table: Table) -> tuple[tuple[str, int], ...]:
    """Return the fewest first headings whose cells tell the rows apart."""
    for width in range(1, len(table.headings) + 1):
        key = table.headings[:width]
        if len(set(table.of(key))) == len(table.rows):
            return key
    raise ValueError(f"two rows of a table are the same: {table.rows}")


def _cells(line: str) -> Cells:
    return tuple(cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|"))


def main() -> None:
    """Write every page that differs from its result files, and name it."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := rewritten(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
