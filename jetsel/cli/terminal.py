"""How tables, times and energies look in a terminal, and in a file that a table is written to."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

WIDTH_IN_A_FILE = 100_000  # columns: what reads a pipe finds each line whole, however long its paths are


def console() -> Console:
    """Return the standard output, which prints brackets as they are; of a fixed width where it is no terminal."""
    out = Console(highlight=False, emoji=False, markup=False)
    return out if out.is_terminal else Console(highlight=False, emoji=False, markup=False, width=WIDTH_IN_A_FILE)


def table(*columns: str) -> Table:
    """Return an empty table; a column whose name begins with > is aligned to the right."""
    made = Table(box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        if column.startswith(">"):
            made.add_column(column[1:], justify="right", no_wrap=True)
        else:
            made.add_column(column, overflow="fold")
    return made


def milliseconds(value: float | None) -> str:
    """Return a time with three digits that mean something, or a dash where it is not known."""
    return (
        "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    )
