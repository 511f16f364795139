"""What the report is made of: tables, and charts that matplotlib draws as SVG, with their numbers as a table."""

from __future__ import annotations

import io
import itertools
import math
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox
from msgspec import Struct

from jetsel.calibrate.judge.words import clean, short

Point: TypeAlias = "tuple[float, float]"

WIDTH_PT = 360.0  # as it is drawn; the page scales it to what there is, about one pixel each on a phone
HEIGHT_PT = 300.0
POINT_PT, RING_PT = 5.0, 7.0  # from the middle of a point, and of its ring, to the edge
LINE_PT = 14.0
DISTANCES_PT, TURNS = (8, 12, 20, 30, 42, 56, 72, 90), 16  # where a label may stand around its point
ACROSS, UPWARDS = 32, 42  # characters that fit beneath a chart, and beside it
INK, SOFT, RULE = "#111111", "#555555", "#dddddd"
SERIES = ("#0072b2", "#c44e00", "#00805d", "#a0528a")
MARKERS = "os^D"  # so that series are told apart without their colours
_VARIABLES = {INK: "ink", SOFT: "soft", RULE: "rule"} | {colour: f"s{i}" for i, colour in enumerate(SERIES)}
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.family": "DejaVu Sans",  # by which texts are measured: the page's own is narrower
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


class Drawing(Struct, frozen=True):
    """What stands inside of an SVG element that is 360 wide and so high."""

    height: float
    content: Markup


def lines(
    x: str,
    y: str,
    series: Mapping[str, Sequence[Point]],
    marks: Collection[str],
    labels: Mapping[str, Point],
    highlights: Collection[str] = (),
) -> Drawing:
    """Draw points over a logarithmic axis. marks: the series whose points no line joins.

    labels: text -> the point that it names. highlights: those whose points get a ring.
    """
    out = io.StringIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser's fonts have what matplotlib's lack
        figure = Figure(figsize=(WIDTH_PT / 72, HEIGHT_PT / 72), dpi=72, layout="constrained")
        axes = figure.add_subplot()
        _plot(axes, series, marks)
        for text in highlights:
            axes.plot(*labels[text], "o", markersize=2 * RING_PT - 2, markerfacecolor="none", markeredgecolor=INK)
        axes.margins(0.08, 0.1)
        axes.grid()
        axes.set_xlabel(short(x, ACROSS), loc="right")
        axes.set_ylabel(short(y, UPWARDS))
        figure.legend(loc="outside upper left", ncols=2, borderaxespad=0, handletextpad=0.3)
        _name(figure, axes, labels, highlights)
        nothing: Any = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing, transparent=True)
    return Drawing(HEIGHT_PT, _embedded(out.getvalue()))


def _plot(axes: Axes, series: Mapping[str, Sequence[Point]], marks: Collection[str]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    for number, (name, points) in enumerate(series.items()):
        is_marked = name in marks
        look: Any = {"marker": MARKERS[number] if is_marked else "", "linestyle": "" if is_marked else "-"}
        across, up = [point[0] for point in points], [point[1] for point in points]
        label = clean(name) or "_"  # matplotlib leaves what begins so out of the legend
        axes.plot(across, up, color=SERIES[number], markersize=4.5, linewidth=1.5, label=label, **look)


def _name(figure: Figure, axes: Axes, labels: Mapping[str, Point], highlights: Collection[str]) -> None:
    """Write each label where it covers no point and no other label, highlights first; one without room is left out."""
    figure.draw_without_rendering()  # the layout is known from here on
    figure.set_layout_engine("none")
    inside = Bbox.from_extents(axes.bbox.x0, axes.bbox.y0, figure.bbox.x1, axes.bbox.y1)
    at = axes.transData.transform
    taken = [
        Bbox([at(point), at(point)]).padded(RING_PT if t in highlights else POINT_PT) for t, point in labels.items()
    ]
    for text in sorted(labels, key=lambda text: text not in highlights):
        look: Any = {"fontsize": 9.5, "fontweight": "bold" if text in highlights else "normal"}
        note = axes.annotate(text, labels[text], (0, 0), textcoords="offset points", ha="center", va="center", **look)
        ink = note.get_window_extent()
        middle = (ink.y0 + ink.y1) / 2  # a browser gives each text the height of a line, whatever its letters
        size = Bbox.from_extents(ink.x0, middle - LINE_PT / 2, ink.x1, middle + LINE_PT / 2)
        place = _free_place(size, inside, taken)
        if place is None:
            note.remove()
            continue
        across, up, away = place
        note.set_position((across, up))
        taken.append(size.translated(across, up))
        if away > DISTANCES_PT[1]:
            line: Any = {"arrowstyle": "-", "color": SOFT, "linewidth": 0.6, "shrinkB": POINT_PT}
            end = across * (1 - size.width / 2 / math.hypot(across, up)), up
            axes.annotate("", labels[text], end, textcoords="offset points", arrowprops=line, zorder=1)


def _free_place(size: Bbox, inside: Bbox, taken: Sequence[Bbox]) -> tuple[float, float, float] | None:
    """How far to move a text from its point, across and up, and how far its edge is then; None without room."""
    for away, turn in itertools.product(DISTANCES_PT, range(TURNS)):
        angle = 2 * math.pi * turn / TURNS
        across, up = math.cos(angle) * (away + size.width / 2), math.sin(angle) * (away + size.height / 2)
        box = size.translated(across, up)
        is_inside = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
        if is_inside and not any(box.overlaps(other) for other in taken):
            return across, up, away
    return None


def _embedded(svg: str) -> Markup:
    """The content of matplotlib's SVG for the page: its style, and names that would stand there twice, left out."""
    inside = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    inside = re.sub(r"<style.*?</style>|<!--.*?-->", "", inside, flags=re.DOTALL)
    inside = re.sub(r'<g id="[^"]*"', "<g", inside)
    for colour, variable in _VARIABLES.items():
        inside = inside.replace(colour, f"var(--{variable})")
    return Markup(inside)


Cell: TypeAlias = "str | tuple[str, str]"
"""What stands in a table: a value, or a value and what stands beneath it in small print."""


class Table(Struct, frozen=True):
    """A table with a body for each group of rows. The first cell of a row is the row's header.

    key: unique in the page. groups: name -> rows; a body under the name "" has no heading. text: the columns that hold
    words, which are set to the left. marks: header of a row that is highlighted -> why.
    """

    key: str
    caption: str
    columns: Sequence[str]
    groups: Mapping[str, Sequence[Sequence[Cell]]]
    text: tuple[int, ...] = ()
    marks: Mapping[str, str] = {}


class ChartFigure(Struct, frozen=True):
    """A chart under its title and what it shows in words, with its numbers."""

    key: str
    title: str
    finding: str
    drawing: Drawing
    numbers: Table
