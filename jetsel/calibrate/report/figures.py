"""Accuracy against time, of every policy and bound."""

from __future__ import annotations

import math
from collections.abc import Mapping

from jetsel.calibrate.findings import Comparison
from jetsel.calibrate.metrics import undominated
from jetsel.calibrate.report.charts import lines
from jetsel.calibrate.report.parts import Figure, Table
from jetsel.calibrate.report.policies import ordered
from jetsel.calibrate.report.words import Words, joined, percent, significant

Point = tuple[float, float]  # mean time in ms, score in hundredths

LETTER, LINE = 0.027, 0.07  # how wide a character and how high a line is, as shares of the axes
KINDS = ("Policies", "Single models", "Bounds")
FRONT = "Cascades of every budget"


def points_of(comparison: Comparison) -> dict[str, Point]:
    """Every policy and bound, the fastest first."""
    return {n: (r.time_ms.mean, 100 * r.share(comparison.criterion)) for n, r in ordered(comparison).items()}


def trade_off(comparison: Comparison, words: Words) -> Figure:
    """Accuracy against time: every policy and bound by its number, and the cascades that no other beats in both."""
    title = f"{words.score(comparison.criterion)} against time"
    key, points = f"{comparison.criterion}-front", points_of(comparison)
    best = [name for *_, name in undominated((*points[name], name) for name in points if name in comparison.policies)]
    finding = f"Of the policies, none is both faster and better than these: {joined(best)}."
    series: dict[str, list[Point]] = {kind: [] for kind in KINDS}
    for name, point in points.items():
        kind = "Single models" if name.startswith("single:") else "Policies"
        series[kind if name in comparison.policies else "Bounds"].append(point)
    series[FRONT] = [(ms, 100 * share) for ms, share, _ in sorted(comparison.front)]
    shown = {name: found for name, found in series.items() if found}
    time, right = words.time("Mean time"), f"{words.score(comparison.criterion)}, %"
    drawing = lines(time, right, shown, KINDS, _labels(points))
    front = [[way, significant(ms), percent(share)] for ms, share, way in sorted(comparison.front)]
    numbers = Table(f"{key}-numbers", f"{FRONT}: the numbers", ["Way to choose", time, right], {"": front})
    return Figure(key, title, finding, drawing, numbers)


def places(comparison: Comparison, words: Words) -> Table:
    """The numbers in the chart of accuracy against time, and whose they are."""
    rows = [
        [f"{number}. {name}", significant(time_ms), f"{right:.1f}"]
        for number, (name, (time_ms, right)) in enumerate(points_of(comparison).items(), 1)
    ]
    columns = ["Policy or bound", words.time("Mean time"), f"{words.score(comparison.criterion)}, %"]
    return Table(f"{comparison.criterion}-places", "The numbers in the chart", columns, {"": rows})


def _labels(points: Mapping[str, Point]) -> dict[str, Point]:
    """The numbers of the points, fastest first, and where each is written; those that would overlap stand together."""
    times, rights = zip(*points.values(), strict=True)
    wide, high = math.log(max(times) / min(times)) or 1.0, max(rights) - min(rights)
    heaps: dict[Point, str] = {}
    for number, (time, right) in enumerate(points.values(), 1):
        for (first, level), text in heaps.items():
            room = LETTER * (len(text) + len(", 00"))
            if abs(right - level) <= LINE * high and math.log(time / first) <= room * wide:
                heaps[first, level] = f"{text}, {number}"
                break
        else:
            heaps[time, right] = str(number)
    return {text: point for point, text in heaps.items()}
