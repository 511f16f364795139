"""Points and lines between two axes, with rules across them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from jetsel.calibrate.report.drawing import (
    LINE,
    MARKS,
    WIDTH,
    Drawing,
    fitted,
    legend,
    line,
    mark,
    stack,
    width_of,
    write,
)
from jetsel.calibrate.report.markup import Node, el
from jetsel.calibrate.report.ticks import Axis, written

TOP = LINE + 6  # the vertical axis is named above itself
RIGHT = WIDTH - 8
Point: TypeAlias = "tuple[float, float]"


class Series(Struct, frozen=True):
    """One series. drawn: marks, a line through them, both, or steps; whiskers: (low, high) along y of each point."""

    name: str
    points: list[Point]
    drawn: Literal["marks", "line", "both", "steps"] = "both"
    whiskers: list[Point] | None = None


class Rule(Struct, frozen=True):
    """A line right up at an x, with its name."""

    x: float
    name: str


class Frame(Struct, frozen=True):
    """Where points fall: two axes."""

    x: Axis
    y: Axis

    def at(self, point: Point) -> Point:
        """The point on the drawing."""
        return self.x.at(point[0]), self.y.at(point[1])

    def shows(self, point: Point) -> bool:
        """Whether the point is numbers that the axes can carry."""
        return all(math.isfinite(v) for v in point) and (point[0] > 0 or not self.x.log)


def frame(
    x: str, y: str, points: Sequence[Point], *, height: float = 200.0, log: bool = False, zero: bool = False
) -> Frame:
    """Fit axes of these names around the points. zero: the vertical axis begins at zero."""
    up = Axis.over(y, [p[1] for p in points], TOP + height, TOP, from_zero=zero)
    left = 10 + max(width_of(written(tick), 11) for tick in up.ticks())
    across = [p[0] for p in points]
    return Frame(Axis.log_over(x, across, left, RIGHT) if log else Axis.over(x, across, left, RIGHT), up)


def plot(
    axes: Frame,
    series: Sequence[Series],
    *,
    rules: Sequence[Rule] = (),
    diagonal: bool = False,
    whole: bool = False,
    over: Sequence[Node] = (),
) -> Drawing:
    """Draw the series in their axes, and `over` on top.

    A rule outside the axes is left out. diagonal: the line of y = x. whole: x counts something, its ticks are integers.
    """
    nodes = _axes(axes, whole)
    heights = [axes.y.at(point[1]) for one in series for point in one.points if axes.shows(point)]
    is_high = sum(heights) < len(heights) * (axes.y.start + axes.y.end) / 2  # then the foot has room for names
    if diagonal:
        (x0, y0), (x1, y1) = axes.at((0, 0)), axes.at((1, 1))
        nodes.append(line(x0, y0, x1, y1, "rule"))
    within = [rule for rule in rules if axes.x.low <= rule.x <= axes.x.high]
    for index, rule in enumerate(within):
        nodes += _rule(axes, rule, axes.y.start - 6 - index * LINE if is_high else axes.y.end + 10 + index * LINE)
    for index, one in enumerate(series):
        nodes += _series(axes, one, index)
    names = [one.name for one in series]
    return stack(
        legend(names, [one.name for one in series if one.drawn in ("line", "steps")]),
        Drawing(axes.y.start + 2 * LINE + 4, [*nodes, *over]),
    )


def _axes(axes: Frame, whole: bool) -> list[Node]:
    x, y = axes.x, axes.y
    nodes = [
        write(0, 12, fitted(y.name, WIDTH), class_="axis"),
        write(RIGHT, y.start + 2 * LINE, fitted(x.name, WIDTH), "end", "axis"),
    ]
    for tick in y.ticks():
        nodes += [
            line(x.start, y.at(tick), x.end, y.at(tick), "grid"),
            write(x.start - 6, y.at(tick) + 4, written(tick), "end", "tick"),
        ]
    for tick in x.ticks():
        if not whole or tick.is_integer():
            nodes += [
                line(x.at(tick), y.start, x.at(tick), y.start + 4, "zero"),
                write(x.at(tick), y.start + 15, written(tick), "middle", "tick"),
            ]
    nodes.append(line(x.start, y.start, x.end, y.start, "zero"))
    return nodes


def _rule(axes: Frame, rule: Rule, y: float) -> list[Node]:
    x = axes.x.at(rule.x)
    on_the_left = x > (axes.x.start + axes.x.end) / 2
    room = x - axes.x.start - 6 if on_the_left else axes.x.end - x - 6
    text = fitted(rule.name, room)
    name = write(x - 4, y, text, "end", "label over") if on_the_left else write(x + 4, y, text, class_="label over")
    return [line(x, axes.y.start, x, axes.y.end, "rule"), name]


def _series(axes: Frame, series: Series, index: int) -> list[Node]:
    nodes: list[Node] = []
    shown = [axes.at(point) for point in series.points if axes.shows(point)]
    if series.drawn in ("line", "both", "steps") and shown:
        nodes.append(el("path", d=_path(shown, series.drawn == "steps"), class_=f"line s{index % MARKS}"))
    for point, ends in zip(series.points, series.whiskers or [], strict=False):
        if axes.shows(point) and all(math.isfinite(end) for end in ends):
            x = axes.x.at(point[0])
            low, high = (axes.y.at(end) for end in ends)
            nodes += [line(x, low, x, high, "whisker")]
            nodes += [line(x - 4, end, x + 4, end, "whisker") for end in (low, high)]
    if series.drawn in ("marks", "both"):
        nodes += [mark(index, x, y) for x, y in shown]
    return nodes


def _path(points: Sequence[Point], steps: bool) -> str:
    (x, y), *rest = points
    parts = [f"M{x:.1f} {y:.1f}"]
    parts += [f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}" for x, y in rest]
    return "".join(parts)
