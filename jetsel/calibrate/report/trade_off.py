"""Accuracy against time of every policy and bound, with the Pareto front and the cascades of every budget."""

from __future__ import annotations

from collections.abc import Mapping

from jetsel.calibrate.findings import Comparison
from jetsel.calibrate.report.drawing import TICK, absent, line, picture, width_of, write
from jetsel.calibrate.report.markup import Node, el
from jetsel.calibrate.report.places import NEAR, Box, places
from jetsel.calibrate.report.plot import Frame, Point, Series, frame, plot
from jetsel.calibrate.report.policies import ordered, score
from jetsel.calibrate.report.tables import folded, grouped
from jetsel.calibrate.report.words import SPACE, Words, joined, percent, significant

KINDS = ("Policies", "Single models", "Bounds")


def undominated(points: Mapping[str, Point]) -> list[str]:
    """The names of the (time, score) that no other is at least as good as in both and better in one; fastest first."""

    def beaten(name: str) -> bool:
        time, score = points[name]
        return any(t <= time and s >= score and (t, s) != (time, score) for t, s in points.values())

    return sorted((name for name in points if not beaten(name)), key=lambda name: points[name])


def trade_off(comparison: Comparison, words: Words, winner: str) -> Node:
    """Accuracy against time: every policy and bound by its number in the list beside it, and the front of cascades."""
    key, title = f"{comparison.criterion}-front", f"{words.score(comparison.criterion)} against time"
    results = ordered(comparison)
    if not results:
        return absent(key, title, "No policy was compared under this criterion.")
    points = {name: (r.time_ms.mean, 100 * score(r, comparison.criterion)) for name, r in results.items()}
    best = undominated({name: points[name] for name in points if name in comparison.policies})
    finding = (
        f"Of the policies, none is both faster and better than these: {joined(best) if best else 'none was compared'}."
    )
    curve = [(time, 100 * share) for time, share, _ in comparison.front]
    axes = frame(
        words.time("Mean time") + ", logarithmic",
        f"{words.score(comparison.criterion)}, %",
        [*points.values(), *curve],
        height=270,
        log=True,
    )
    kinds = [_kind(name, comparison) for name in points]
    series = [
        Series(kind, [p for p, k in zip(points.values(), kinds, strict=True) if k == kind], "marks") for kind in KINDS
    ]
    if curve:
        series.append(Series("Cascades of every budget", sorted(curve), "line"))
    drawing = plot(axes, series, over=_numbers(points, axes))
    entries = [_entry(name, points[name], winner, best, words) for name in points]
    chart = el("div", picture(key, title, finding, drawing), el("ol", *entries), class_="keyed")
    caption = el("figcaption", el("strong", title), " ", finding)
    return el("figure", caption, chart, folded("The numbers", _behind(comparison, points, words)), id=key)


def _kind(name: str, comparison: Comparison) -> str:
    if name not in comparison.policies:
        return "Bounds"
    return "Single models" if name.startswith("single:") else "Policies"


def _numbers(points: Mapping[str, Point], axes: Frame) -> list[Node]:
    """The numbers of the points beside them, one label where points coincide, tied by a line where it went farther."""
    labels: dict[Point, list[str]] = {}
    for number, point in enumerate(points.values(), 1):
        if axes.shows(point):
            x, y = axes.at(point)
            labels.setdefault((round(x, 1), round(y, 1)), []).append(str(number))
    texts = [", ".join(numbers) for numbers in labels.values()]
    boxes = places(list(labels), [(width_of(text, TICK), TICK * 1.25) for text in texts], _inside(axes))
    nodes: list[Node] = []
    for point, text, box in zip(labels, texts, boxes, strict=True):
        if box.gap(point) > NEAR:
            nodes.append(line(*point, *box.nearest(point), "tie"))
        nodes.append(write(box.x, box.y + 4, text, "middle", "label number over"))
    return nodes


def _inside(axes: Frame) -> Box:
    x, y = axes.x, axes.y
    return Box((x.start + x.end) / 2, (y.start + y.end) / 2, x.end - x.start, y.start - y.end)


def _entry(name: str, point: Point, winner: str, best: list[str], words: Words) -> Node:
    tags = [("winner", name == winner), ("on the front", name in best)]
    return el(
        "li",
        el("span", name, class_="name"),
        *[el("span", tag, class_="tag") for tag, holds in tags if holds],
        el("span", f"{point[1]:.1f}{SPACE}% in {words.ms(point[0])}", class_="interval"),
    )


def _behind(comparison: Comparison, points: Mapping[str, Point], words: Words) -> Node:
    columns = ["Policy", words.time("Mean time"), f"{words.score(comparison.criterion)}, %"]
    shown = [[name, significant(time), f"{share:.1f}"] for name, (time, share) in points.items()]
    front = [[name, significant(time), percent(share)] for time, share, name in sorted(comparison.front)]
    groups = {"Policies and bounds": shown, "Cascades of every budget": front}
    caption = f"{words.score(comparison.criterion)} against time: the numbers"
    return grouped(f"{comparison.criterion}-front-numbers", caption, columns, groups)
