"""Horizontal bars: an amount for each name, drawn from zero, its number at the right edge."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from jetsel.calibrate.report.drawing import WIDTH, Drawing, fitted, line, width_of, write
from jetsel.calibrate.report.markup import Node, el
from jetsel.calibrate.report.ticks import Axis

PITCH = 20.0
NAMES = 145.0  # the most room that names get


class Bar(Struct, frozen=True):
    """One bar. text: the number as it is written; low, high: an interval; strong: the one to look at."""

    name: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    strong: bool = False


def bars(quantity: str, rows: Sequence[Bar]) -> Drawing:
    """Draw the rows beneath the name of what they show; a value that is no number has no bar."""
    names = min(NAMES, max(width_of(row.name) for row in rows))
    numbers = max(width_of(row.text) for row in rows)
    known = [v for row in rows for v in (row.value, row.low, row.high) if v is not None and math.isfinite(v)]
    axis = Axis.over(quantity, known, names + 10, WIDTH - numbers - 8, from_zero=True)
    nodes = [write(0, 12, fitted(quantity, WIDTH), class_="axis")]
    top = 22.0
    for index, row in enumerate(rows):
        middle = top + PITCH * (index + 0.5)
        class_ = "label strong" if row.strong else "label"
        nodes += [
            write(names, middle + 4, fitted(row.name, names), "end", class_),
            *_bar(axis, row, middle),
            write(WIDTH, middle + 4, row.text, "end", class_),
        ]
    bottom = top + PITCH * len(rows)
    nodes.append(line(axis.at(0), top, axis.at(0), bottom, "zero"))
    return Drawing(bottom + 8, nodes)


def _bar(axis: Axis, row: Bar, middle: float) -> list[Node]:
    if not math.isfinite(row.value):
        return []
    left, right = sorted((axis.at(0), axis.at(row.value)))
    class_ = "bar strong" if row.strong else "bar"
    nodes = [el("rect", x=left, y=middle - 6, width=right - left, height=12, class_=class_)]
    if row.low is not None and row.high is not None:
        nodes.append(line(axis.at(row.low), middle, axis.at(row.high), middle, "whisker"))
        nodes += [line(axis.at(end), middle - 3, axis.at(end), middle + 3, "whisker") for end in (row.low, row.high)]
    return nodes
