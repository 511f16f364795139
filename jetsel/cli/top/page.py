"""The page that `jetsel top` shows, cut to what a window has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from jetsel.cli.top.lines import line
from jetsel.cli.top.parts import head, models, notes, policies, stages, traffic

if TYPE_CHECKING:
    from jetsel.cli.top.watching import Seen

FEWEST_MODELS = 3  # lines of models, however low the window


def page(seen: Seen, interval_s: float, width: int, height: int | None = None) -> Group:
    """Return the page for a window of so many characters; height None: as long as it takes.

    Where the window is too low, the policies go first, then the empty lines between the parts, then the dearest models.
    What is still too long ends with how many lines more there are.
    """
    every = sum(len(family.models) for family in seen.reply.families)
    top = head(seen, interval_s, width, is_live=height is not None)
    parts = [top, traffic(seen), stages(seen.reply), models(seen, width, every), notes(seen.reply, width)]
    spaced = [part for part in [*parts, policies(seen.reply)] if part]
    if height is not None and _height(spaced) > height:
        spaced = [part for part in parts if part]
    gap = [Text()]
    if height is not None and _height(spaced) > height:
        gap = []
        over = sum(map(len, parts)) - height
        if over > 0:
            parts[3] = models(seen, width, max(every - over, min(FEWEST_MODELS, every)))
        spaced = [part for part in parts if part]
    lines = [text for part in spaced for text in [*gap, *part]][len(gap) :]
    if seen.gone is not None:
        for text in lines[len(parts[0]) :]:
            text.stylize("dim")
    if height is not None and len(lines) > height:
        more = len(lines) - (height - 1)
        lines = [*lines[: height - 1], line(f"... {more} more lines: a higher window shows them", "dim")]
    return Group(*lines)


def _height(parts: list[list[Text]]) -> int:
    return sum(map(len, parts)) + len(parts) - 1
