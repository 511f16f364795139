"""Dots in rows: several quantities for each name on a shared axis, one or two axes side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from jetsel.calibrate.report.drawing import LINE, WIDTH, Drawing, fitted, legend, line, mark, stack, width_of, write
from jetsel.calibrate.report.markup import Node, el
from jetsel.calibrate.report.ticks import Axis, written

NAMES = 145.0  # the most room that names get
GAP = 14.0


class Dot(Struct, frozen=True):
    """One value and its interval, where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


class Panel(Struct, frozen=True):
    """One axis. series: the name of each series and its dots, one for each row."""

    quantity: str
    series: dict[str, list[Dot]]
    from_zero: bool = False


def dots(rows: Sequence[str], panels: Sequence[Panel], strong: Sequence[str] = ()) -> Drawing:
    """Draw a line of dots for each row in every panel; `strong` are the names of the rows to look at."""
    names = min(NAMES, max(width_of(row) for row in rows))
    pitch = max(18.0, 4.0 + 10.0 * max(len(panel.series) for panel in panels))
    top, bottom = LINE + 4, LINE + 4 + pitch * len(rows)
    nodes = [
        write(
            names, top + pitch * (i + 0.5) + 4, fitted(row, names), "end", "label strong" if row in strong else "label"
        )
        for i, row in enumerate(rows)
    ]
    stripes = [
        el("rect", x=names + 6, y=top + pitch * i, width=WIDTH - names - 6, height=pitch, class_="stripe")
        for i in range(0, len(rows), 2)
    ]
    nodes = [*stripes, *nodes]
    room = (WIDTH - names - 10 - GAP * (len(panels) - 1)) / len(panels)
    for index, panel in enumerate(panels):
        left = names + 10 + index * (room + GAP)
        nodes += _panel(panel, left, left + room, top, bottom, pitch)
    named = list(dict.fromkeys(name for panel in panels for name in panel.series))
    return stack(legend(named if len(panels) == 1 else []), Drawing(bottom + 24, nodes))


def _panel(panel: Panel, left: float, right: float, top: float, bottom: float, pitch: float) -> list[Node]:
    every = [dot for series in panel.series.values() for dot in series]
    known = [v for dot in every for v in (dot.value, dot.low, dot.high) if v is not None]
    axis = Axis.over(panel.quantity, known, left + 4, right - 6, from_zero=panel.from_zero)
    nodes = [write(left, 12, fitted(panel.quantity, right - left), class_="axis")]
    for tick in axis.ticks(max(3, int((right - left) / 45))):
        nodes += [
            line(axis.at(tick), top, axis.at(tick), bottom, "grid"),
            write(axis.at(tick), bottom + 14, written(tick), "middle", "tick"),
        ]
    for series, values in enumerate(panel.series.values()):
        aside = (series - (len(panel.series) - 1) / 2) * 10  # below each other, so that equal values both show
        for row, dot in enumerate(values):
            if math.isfinite(dot.value):
                nodes += _dot(axis, dot, series, top + pitch * (row + 0.5) + aside)
    return nodes


def _dot(axis: Axis, dot: Dot, series: int, y: float) -> list[Node]:
    interval: list[Node] = []
    if dot.low is not None and dot.high is not None:
        interval = [line(axis.at(dot.low), y, axis.at(dot.high), y, "whisker")]
    return [*interval, mark(series, axis.at(dot.value), y)]
