"""What pages of results must keep: that everything they quote stands in a result file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAPERS = ROOT / "calibration" / "papers"

_SECTIONS = re.compile(r"\((?:\d\.\d(?:\.\d)?(?:, |\)))+|[Ss]ections? \d\.\d(?: and \d\.\d)?")
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*\.\d+")


def rows_not_written(page: str, results: Iterable[Path]) -> list[str]:
    """Return the rows of the page's tables that stand in none of the result files."""
    written = {line for path in results for line in path.read_text(encoding="utf-8").splitlines()}
    return [line for line in page.splitlines() if line.startswith("|") and line not in written]


def numbers_not_written(page: str, results: Iterable[Path]) -> list[str]:
    """Return the decimal numbers of the page, of sections apart, that stand in none of the result files."""
    written = {one.lstrip("+-") for path in results for one in _NUMBER.findall(path.read_text(encoding="utf-8"))}
    return [one for one in _NUMBER.findall(_SECTIONS.sub("", page)) if one.lstrip("+-") not in written]
