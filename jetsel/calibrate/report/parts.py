"""What the page is made of: tables, and a chart that carries its numbers as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from jetsel.calibrate.report.charts import Drawing

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


class Figure(Struct, frozen=True):
    """A chart under its title and what it shows in words, with its numbers."""

    key: str
    title: str
    finding: str
    drawing: Drawing
    numbers: Table
