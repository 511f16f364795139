"""Finds a place beside each point of a crowded chart for its label, so that no two labels overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

MARK = 5.0  # half of the square that a point's own mark takes
NEAR = 8.0  # a label farther from its point than this is tied to it by a line


class Box(Struct, frozen=True):
    """A rectangle around a centre."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        """Whether the two share any area."""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2
            and abs(self.y - other.y) < (self.height + other.height) / 2
        )

    def nearest(self, point: tuple[float, float]) -> tuple[float, float]:
        """The point of the rectangle that is nearest to another."""
        x, y = point
        half_width, half_height = self.width / 2, self.height / 2
        return (
            min(max(x, self.x - half_width), self.x + half_width),
            min(max(y, self.y - half_height), self.y + half_height),
        )

    def gap(self, point: tuple[float, float]) -> float:
        """How far the point is from the rectangle."""
        return math.dist(point, self.nearest(point))

    def inside(self, other: Box) -> bool:
        """Whether it lies wholly in the other."""
        return (
            abs(self.x - other.x) <= (other.width - self.width) / 2
            and abs(self.y - other.y) <= (other.height - self.height) / 2
        )


def places(points: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], within: Box) -> list[Box]:
    """Return a box for the label of each point: the nearest free one, tried in the points' order.

    sizes: (width, height) of each label. A label avoids the marks and the labels before it; where nothing is free in
    `within`, it stands at its point.
    """
    marks = [Box(x, y, 2 * MARK, 2 * MARK) for x, y in points]
    placed: list[Box] = []
    for (x, y), (width, height) in zip(points, sizes, strict=True):
        taken = marks + placed
        free = (
            box
            for dx, dy in _around(width, height)
            if (box := Box(x + dx, y + dy, width, height)).inside(within)
            and not any(box.overlaps(other) for other in taken)
        )
        placed.append(next(free, Box(x, y, width, height)))
    return placed


def _around(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Where a label's centre may stand from its point: right of it, then round it, farther and farther."""
    for ring in range(30):
        away = MARK + 6 * ring
        for across, up in ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1)):
            lift = away if across == 0 else away / 2
            yield across * (away + width / 2), up * (lift + height / 2)
