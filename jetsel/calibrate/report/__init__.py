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
    """A table for a page or a terminal. The first cell of a row is the row's header.

    text: indices of columns that hold words. marks: header of a highlighted row -> why it is highlighted.
    """

    caption: str
    columns: list[str]
    rows: list[list[str]]
    text: tuple[int, ...] = ()
    marks: Mapping[str, str] = {}


class Chart(NamedTuple):
    """Series of points with a logarithmic x axis. finding: one sentence about what the chart shows.

    joined: series whose points a line joins. labels: text -> its point. highlights: labels whose points get a ring.
    """

    title: str
    finding: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    joined: Collection[str] = ()
    labels: Mapping[str, tuple[float, float]] = {}
    highlights: Collection[str] = ()


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
    """Return the module that fills the templates, None if a library is missing."""
    try:
        return importlib.import_module("jetsel.calibrate.report.page")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in NEEDS:
            raise
        return None
