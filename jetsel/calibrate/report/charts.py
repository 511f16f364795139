"""A chart as SVG that matplotlib draws. Colours are the page's, texts stay texts."""

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
HEIGHT_PT = 300.0
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
    series: Mapping[str, Sequence[tuple[float, float]]],
    marks: Collection[str],
    labels: Mapping[str, tuple[float, float]],
) -> Drawing:
    """Draw points over a logarithmic axis. marks: the series whose points no line joins.

    labels: text -> the point that it stands beside.
    """

    def draw(axes: Axes) -> None:
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
        for text, point in labels.items():
            axes.annotate(text, point, (5, 3), textcoords="offset points", fontweight="bold")
        axes.grid()
        axes.set_xlabel(short(x, ACROSS), loc="right")
        axes.set_ylabel(short(y, UPWARDS))

    return _drawn(draw)


def _drawn(draw: Callable[[Axes], None]) -> Drawing:
    """Draw into one pair of axes, with a legend above it where something has a name."""
    out = io.StringIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser's fonts have what matplotlib's lack
        figure = Figure(figsize=(WIDTH_PT / 72, HEIGHT_PT / 72), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside upper left", ncols=2, borderaxespad=0, handletextpad=0.3)
        nothing: Any = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing, transparent=True)
    return Drawing(HEIGHT_PT, _embedded(out.getvalue()))


def _embedded(svg: str) -> Markup:
    """The content of matplotlib's SVG for the page: its style, and names that would stand there twice, left out."""
    inside = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    inside = re.sub(r"<style.*?</style>|<!--.*?-->", "", inside, flags=re.DOTALL)
    inside = re.sub(r'<g id="[^"]*"', "<g", inside)
    for colour, variable in _VARIABLES.items():
        inside = inside.replace(colour, f"var(--{variable})")
    return Markup(inside)
