"""What the page is made of: tables, and charts that carry their numbers as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from jetsel.calibrate.report.charts import Bar, Drawing, bars

Cell: TypeAlias = "str | tuple[str, str]"
"""What stands in a table: a value, or a value and what stands beneath it in small print."""


class Table(Struct, frozen=True):
    """A table with a body for each group of rows. The first cell of a row is the row's header.

    key: unique in the page. groups: name -> rows; a body under the name "" has no heading. text: the columns that hold
    words, which are set to the left.
    """

    key: str
    caption: str
    columns: Sequence[str]
    groups: Mapping[str, Sequence[Sequence[Cell]]]
    text: tuple[int, ...] = ()


class Figure(Struct, frozen=True):
    """A chart under its title and what it shows in words, with its numbers."""

    key: str
    title: str
    finding: str
    drawing: Drawing
    numbers: Table


def behind(key: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """Return the table that stands folded beneath the chart of this key and title."""
    return Table(f"{key}-numbers", f"{title}: the numbers", columns, {"": rows})


def bar_figure(key: str, title: str, finding: str, what: str, quantity: str, rows: Sequence[Bar]) -> Figure:
    """Return bars with their numbers. what: the name of what has a bar."""
    numbers = [[row.name, row.text] for row in rows]
    return Figure(key, title, finding, bars(quantity, rows), behind(key, title, [what, quantity], numbers))
