"""The charts of the report, which matplotlib draws as SVG."""

from __future__ import annotations

import io
import itertools
import math
import re
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from jetsel.calibrate.judge.words import clean, short
from jetsel.calibrate.report import Chart

Point: TypeAlias = "tuple[float, float]"

WIDTH_PT, HEIGHT_PT = 360.0, 300.0  # as in figure.html; the page scales a point to about one pixel on a phone
POINT_PT, RING_PT = 5.0, 7.0  # radius of a point, and of its ring
LINE_PT = 14.0
DISTANCES_PT, TURNS = (8, 12, 20, 30, 42, 56, 72, 90), 16  # distances and directions of a label from its point
ACROSS, UPWARDS = 32, 42  # characters that fit along the x axis and the y axis
INK, SOFT, RULE = "#111111", "#555555", "#dddddd"
SERIES = ("#0072b2", "#c44e00", "#00805d", "#a0528a", "#7a6a00")
MARKERS = "os^Dv"  # distinguish the series without colours
_VARIABLES = {INK: "ink", SOFT: "soft", RULE: "rule"} | {colour: f"s{i}" for i, colour in enumerate(SERIES)}
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # keeps dollar signs in names
    "font.family": "DejaVu Sans",  # measures the texts; the page's own font is narrower
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
}


def draw(chart: Chart) -> Markup:
    """Return the chart as the content of an SVG element of WIDTH_PT by HEIGHT_PT."""
    out = io.StringIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser's fonts have more characters
        figure = Figure(figsize=(WIDTH_PT / 72, HEIGHT_PT / 72), dpi=72, layout="constrained")
        axes = figure.add_subplot()
        _plot_series(axes, chart)
        for text in chart.highlights:
            axes.plot(*chart.labels[text], "o", markersize=2 * RING_PT - 2, markerfacecolor="none", markeredgecolor=INK)
        axes.margins(0.08, 0.1)
        axes.grid()
        axes.set_xlabel(short(chart.x, ACROSS), loc="right")
        axes.set_ylabel(short(chart.y, UPWARDS))
        figure.legend(loc="outside upper left", ncols=2, borderaxespad=0, handletextpad=0.3)
        _place_labels(figure, axes, chart)
        nothing: Any = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing, transparent=True)
    return _embeddable(out.getvalue())


def _plot_series(axes: Axes, chart: Chart) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    for colour, marker, (name, points) in zip(SERIES, MARKERS, chart.series.items(), strict=False):
        style: Any = {"linestyle": "-" if name in chart.joined else "", "zorder": 1 if name in chart.joined else 2}
        across, up = [point[0] for point in points], [point[1] for point in points]
        label = clean(name) or "_"  # matplotlib omits labels that begin with _ from the legend
        axes.plot(across, up, color=colour, marker=marker, markersize=4.5, linewidth=1.5, label=label, **style)


def _place_labels(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Place each label where it covers no point and no other label, highlights first; omit labels without room."""
    figure.draw_without_rendering()  # computes the layout
    figure.set_layout_engine("none")
    inside = Bbox.from_extents(axes.bbox.x0, axes.bbox.y0, figure.bbox.x1, axes.bbox.y1)
    to_pixels, labels, highlights = axes.transData.transform, chart.labels, chart.highlights
    points = [(point, POINT_PT) for points in chart.series.values() for point in points]
    points += [(labels[text], RING_PT) for text in highlights]
    taken = [Bbox([to_pixels(point), to_pixels(point)]).padded(radius_pt) for point, radius_pt in points]
    for text in sorted(labels, key=lambda text: text not in highlights):
        style: Any = {"fontsize": 9.5, "fontweight": "bold" if text in highlights else "normal"}
        note = axes.annotate(text, labels[text], (0, 0), textcoords="offset points", ha="center", va="center", **style)
        extent = note.get_window_extent()
        middle = (extent.y0 + extent.y1) / 2  # a browser gives each text the height of a line
        size = Bbox.from_extents(extent.x0, middle - LINE_PT / 2, extent.x1, middle + LINE_PT / 2)
        position = _free_place(size, inside, taken)
        if position is None:
            note.remove()
            continue
        across, up, away = position
        note.set_position((across, up))
        taken.append(size.translated(across, up))
        if away > DISTANCES_PT[1]:
            leader_line: Any = {"arrowstyle": "-", "color": SOFT, "linewidth": 0.6, "shrinkB": POINT_PT}
            end = across * (1 - size.width / 2 / math.hypot(across, up)), up
            axes.annotate("", labels[text], end, textcoords="offset points", arrowprops=leader_line, zorder=1)


def _free_place(size: Bbox, inside: Bbox, taken: Sequence[Bbox]) -> tuple[float, float, float] | None:
    """Return how far to move a text from its point: across, up, and the distance of its edge; None if nothing is free.

    size: the text's box centred on its point. inside: the area to stay in. taken: boxes not to cover. All in points.
    """
    for away, turn in itertools.product(DISTANCES_PT, range(TURNS)):
        angle = 2 * math.pi * turn / TURNS
        across, up = math.cos(angle) * (away + size.width / 2), math.sin(angle) * (away + size.height / 2)
        box = size.translated(across, up)
        is_inside = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
        if is_inside and not any(box.overlaps(other) for other in taken):
            return across, up, away
    return None


def _embeddable(svg: str) -> Markup:
    """Return the content of matplotlib's SVG without its style, and without ids, which must be unique in the page."""
    inside = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    inside = re.sub(r"<style.*?</style>|<!--.*?-->", "", inside, flags=re.DOTALL)
    inside = re.sub(r'<g id="[^"]*"', "<g", inside)
    for colour, variable in _VARIABLES.items():
        inside = inside.replace(colour, f"var(--{variable})")
    return Markup(inside)
