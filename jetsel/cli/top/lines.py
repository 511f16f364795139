"""Lines of text that fit a window: cells in columns, and bars."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich.text import Text

GAP = "  "
BAR = 24  # characters of a bar, ends not counted
INDENT = "    "  # of what goes on from the line above


def line(text: str, style: str = "") -> Text:
    """Return one line, which is cut where the window ends."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis", end="\n")


def folded(text: str, width: int, style: str = "") -> list[Text]:
    """Return a text whose end matters, such as a repair, in as many lines as it takes."""
    pieces = wrap(text, max(width, len(INDENT) + 1), subsequent_indent=INDENT, break_on_hyphens=False)
    return [line(piece, style) for piece in pieces]


def columns(rows: Sequence[Sequence[str]], names: int = 1) -> list[Text]:
    """Return the rows as lines; the first `names` columns are aligned to the left, and the first row is bold."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if place < names else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(line(GAP.join(cells), "" if number else "bold"))
    return lines


def bar(value: float, most: float) -> str:
    """Return how much of a limit is taken, as a bar; the least that is more than nothing shows."""
    filled = min(BAR, -(-int(value * BAR) // max(int(most), 1))) if most > 0 else 0
    return f"[{'#' * filled}{'.' * (BAR - filled)}]"
