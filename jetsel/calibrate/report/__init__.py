"""The report of a calibration: what was found, as one HTML file that opens offline."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from jetsel.calibrate.findings import Findings

NEEDS = ("jinja2", "markupsafe", "matplotlib")
NO_PAGE = "the HTML report needs matplotlib and Jinja2: pip install 'jetsel[calibrate]'"


class Listing(NamedTuple):
    """A table for a page or a terminal. text: the columns that hold words."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    text: tuple[int, ...]


def render(findings: Findings) -> str | None:
    """Return the report as the text of one HTML file, to be written as UTF-8; None where a library of it is missing.

    Nothing in the findings is read as markup; characters that a page cannot hold are replaced.
    """
    pages = _pages()
    return None if pages is None else pages.page(findings)


def render_candidates(title: str, sentences: Sequence[str], listings: Sequence[Listing]) -> str | None:
    """Return the report on the candidates of a model likewise."""
    pages = _pages()
    return None if pages is None else pages.candidates_page(title, sentences, listings)


def _pages() -> Any:
    """Return what fills the templates in, None where a library of it is missing."""
    try:
        return importlib.import_module("jetsel.calibrate.report.page")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in NEEDS:
            raise
        return None
