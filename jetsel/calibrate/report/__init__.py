"""The report of a calibration: what was found, as one HTML file that opens offline."""

from __future__ import annotations

from jetsel.calibrate.findings import Findings

NEEDS = ("jinja2", "markupsafe", "matplotlib")
NO_PAGE = "the HTML report needs matplotlib and Jinja2: pip install 'jetsel[calibrate]'"


def render(findings: Findings) -> str | None:
    """Return the report as the text of one HTML file, to be written as UTF-8; None where a library of it is missing.

    Nothing in the findings is read as markup; characters that a page cannot hold are replaced.
    """
    try:
        from jetsel.calibrate.report.page import page
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in NEEDS:
            raise
        return None
    return page(findings)
