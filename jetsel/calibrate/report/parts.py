"""What the page is made of: tables, and charts that carry their numbers as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from jetsel.calibrate.report.charts import Bar, Drawing, bars, dots, lines
from jetsel.calibrate.report.words import significant

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
    """A chart under its title and what it shows in words, with its numbers. Without a drawing the finding says why."""

    key: str
    title: str
    finding: str
    drawing: Drawing | None = None
    numbers: Table | None = None


def behind(key: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """Return the table that stands folded beneath the chart of this key and title."""
    return Table(f"{key}-numbers", f"{title}: the numbers", columns, {"": rows})


def bar_figure(key: str, title: str, finding: str, what: str, quantity: str, rows: Sequence[Bar]) -> Figure:
    """Return bars with their numbers. what: the name of what has a bar."""
    numbers = [[row.name, row.text] for row in rows]
    return Figure(key, title, finding, bars(quantity, rows), behind(key, title, [what, quantity], numbers))


def dot_figure(
    key: str,
    title: str,
    finding: str,
    what: str,
    quantity: str,
    rows: Sequence[str],
    series: Mapping[str, Sequence[tuple[float, float, float]]],
) -> Figure:
    """Return dots in rows with their numbers. series: name -> (value, low, high) of each row, in hundredths."""

    def written(value: float) -> str:
        return f"{value:.1f}" if math.isfinite(value) else "none"

    numbers = [[name, *(written(values[i][0]) for values in series.values())] for i, name in enumerate(rows)]
    columns = [what, *(f"{name}, %" for name in series)]
    return Figure(key, title, finding, dots(quantity, rows, series), behind(key, title, columns, numbers))


def line_figure(
    key: str,
    title: str,
    finding: str,
    x: str,
    y: str,
    points: Sequence[tuple[float, float]],
    rules: Mapping[str, float],
) -> Figure:
    """Return one line with its numbers. rules: name -> x of a dashed line. y is in hundredths."""
    numbers = [[significant(across), f"{up:.1f}"] for across, up in points]
    drawing = lines(x, y, {"": points}, rules=rules)
    return Figure(key, title, finding, drawing, behind(key, title, [x, y], numbers))
