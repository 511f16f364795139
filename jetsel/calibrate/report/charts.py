"""Charts as SVG that matplotlib draws: bars, points and lines. Colours are the page's, texts stay texts."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from msgspec import Struct

from jetsel.calibrate.report.words import clean, short

WIDTH_PT = 360.0  # as it is drawn; the page scales it to what there is, about one pixel each on a phone
ROW_PT = 20.0
ACROSS = 32  # characters that fit beneath a chart
MOST_MARKED = 20  # points on a line
INK, SOFT, RULE, BAR = "#111111", "#555555", "#dddddd", "#6c98ba"
SERIES = ("#0072b2", "#c44e00", "#00805d", "#a0528a")
MARKERS = "os^D"  # so that series are told apart without their colours
_VARIABLES = {INK: "ink", SOFT: "soft", RULE: "rule", BAR: "bar"} | {colour: f"s{i}" for i, colour in enumerate(SERIES)}
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


class Bar(Struct, frozen=True):
    """One bar. text: the number as it is written; strong: the one to look at."""

    name: str
    value: float
    text: str
    strong: bool = False


def bars(quantity: str, rows: Sequence[Bar]) -> Drawing:
    """Draw a horizontal bar for each row, its number beside it."""

    def draw(axes: Axes) -> None:
        colours = [SERIES[0] if row.strong else BAR for row in rows]
        axes.barh(range(len(rows)), [row.value for row in rows], 0.65, color=colours)
        for place, row in enumerate(rows):
            axes.annotate(row.text, (row.value, place), (4, 0), textcoords="offset points", va="center")
        axes.margins(x=0.2)
        axes.set_yticks(range(len(rows)), [short(row.name) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.set_xlabel(short(quantity, ACROSS), loc="right")

    return _drawn(44 + ROW_PT * len(rows), draw)


def lines(
    x: str,
    y: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    height: float,
    log: bool = False,
    marks: Collection[str] = (),
    diagonal: bool = False,
    labels: Mapping[str, tuple[float, float]] | None = None,
) -> Drawing:
    """Draw points that lines join. marks: the series that no line joins. log: of the horizontal axis.

    labels: text -> the point that it stands beside.
    """

    def draw(axes: Axes) -> None:
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        if diagonal:
            axes.plot([0, 1], [0, 1], color=SOFT, linestyle="--", linewidth=1)
        for number, (name, points) in enumerate(series.items()):
            is_marked = name in marks or len(points) <= MOST_MARKED
            look: Any = {"marker": MARKERS[number] if is_marked else "", "linestyle": "" if name in marks else "-"}
            across, up = [point[0] for point in points], [point[1] for point in points]
            label = clean(name) or "_"  # matplotlib leaves what begins so out of the legend
            axes.plot(across, up, color=SERIES[number], markersize=4.5, linewidth=1.5, label=label, **look)
        for text, point in (labels or {}).items():
            axes.annotate(text, point, (5, 3), textcoords="offset points", fontweight="bold")
        axes.grid()
        axes.set_xlabel(short(x, ACROSS), loc="right")
        axes.set_ylabel(short(y, int(height / 7)))

    return _drawn(height, draw)


def _drawn(height: float, draw: Callable[[Axes], None]) -> Drawing:
    """Draw into one pair of axes, with a legend above it where something has a name."""
    out = io.StringIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser's fonts have what matplotlib's lack
        figure = Figure(figsize=(WIDTH_PT / 72, height / 72), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside upper left", ncols=2, borderaxespad=0, handletextpad=0.3)
        nothing: Any = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing, transparent=True)
    return Drawing(height, _embedded(out.getvalue()))


def _embedded(svg: str) -> Markup:
    """The content of matplotlib's SVG for the page: its style, and names that would stand there twice, left out."""
    inside = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    inside = re.sub(r"<style.*?</style>|<!--.*?-->", "", inside, flags=re.DOTALL)
    inside = re.sub(r'<g id="[^"]*"', "<g", inside)
    for colour, variable in _VARIABLES.items():
        inside = inside.replace(colour, f"var(--{variable})")
    return Markup(inside)
