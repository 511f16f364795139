"""Tables that a screen reader can follow: caption, column and row headers, and a region that scrolls on a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from jetsel.calibrate.report.markup import Child, Node, el

Row: TypeAlias = "Sequence[Child]"  # the first cell is the row's header


def table(key: str, caption: str, columns: Sequence[str], rows: Sequence[Row], text: Sequence[int] = ()) -> Node:
    """Return a table of one body. key: unique in the page. text: the columns that hold words, set to the left."""
    return grouped(key, caption, columns, {"": rows}, text)


def grouped(
    key: str, caption: str, columns: Sequence[str], groups: Mapping[str, Sequence[Row]], text: Sequence[int] = ()
) -> Node:
    """Return a table with a body for each group of rows that has any, under its name where it has one."""
    left = {0, *text}
    head = el("tr", *[el("th", c, scope="col", class_=None if i in left else "num") for i, c in enumerate(columns)])
    bodies = [
        el("tbody", _group(name, len(columns)) if name else None, *[_row(row, left) for row in rows])
        for name, rows in groups.items()
        if rows
    ]
    caption_id = f"{key}-caption"
    made = el("table", el("caption", el("span", caption), id=caption_id), el("thead", head), *bodies)
    return el("div", made, class_="scroll", tabindex=0, role="region", aria_labelledby=caption_id)


def numbers_behind(key: str, title: str, columns: Sequence[str], rows: Sequence[Row], text: Sequence[int] = ()) -> Node:
    """Return the table that stands folded beneath the chart of this key and title."""
    return table(f"{key}-numbers", f"{title}: the numbers", columns, rows, text)


def folded(summary: str, content: Node) -> Node:
    """Return the content behind a line that opens it."""
    return el("details", el("summary", summary), content)


def _group(name: str, width: int) -> Node:
    return el("tr", el("th", name, scope="rowgroup", colspan=width, class_="group"))


def _row(row: Row, left: set[int]) -> Node:
    first, *rest = row
    cells = [el("td", cell, class_=None if i in left else "num") for i, cell in enumerate(rest, 1)]
    return el("tr", el("th", first, scope="row"), *cells)
