"""The report of a calibration: its findings as one HTML file that opens offline."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from jetsel.base.errors import pip_install
from jetsel.calibrate.judge.findings import Findings
from jetsel.image import Limits

NEEDS = ("jinja2", "markupsafe", "matplotlib")
NO_PAGE = f"the HTML report needs matplotlib and Jinja2: {pip_install('calibrate')}"


class Listing(NamedTuple):
    """A table for a page or a terminal."""

    caption: str
    columns: list[str]
    rows: list[list[str]]  # the first cell is the row's header
    text: tuple[int, ...] = ()  # indices of columns that hold words
    marks: Mapping[str, str] = {}  # header of a highlighted row -> why it is highlighted


class Chart(NamedTuple):
    """Series of points with a logarithmic x axis."""

    title: str
    finding: str  # one sentence about what the chart shows
    x: str  # label of the axis
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]  # name -> points
    joined: Collection[str] = ()  # series whose points a line joins
    labels: Mapping[str, tuple[float, float]] = {}  # text -> its point
    highlights: Collection[str] = ()  # labels whose points get a ring


class Section(NamedTuple):
    """The charts and tables under one heading of a page."""

    heading: str
    charts: Sequence[Chart]
    listings: Sequence[Listing]


def render(findings: Findings, limits: Limits) -> str | None:
    """Return the report as the text of one HTML file, to be written as UTF-8; None if a library is missing.

    It contains small copies of the images, which are read within `limits`, and stays under 5 MB. Texts of the findings
    are escaped; characters that a page cannot carry are replaced.
    """
    pages = _page_module()
    return None if pages is None else pages.render_page(findings, limits)


def render_sections(command: str, title: str, sentences: Sequence[str], sections: Sequence[Section]) -> str | None:
    """Return the report of another command as HTML text; None if a library is missing."""
    pages = _page_module()
    values = {"command": command, "title": title, "sentences": sentences, "sections": sections}
    return None if pages is None else pages.render_template("sections.html", **values)


def _page_module() -> Any:
    """Return the module that fills in the templates; None if a library that it needs is not installed."""
    try:
        return importlib.import_module("jetsel.calibrate.report.page")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in NEEDS:
            raise
        return None
