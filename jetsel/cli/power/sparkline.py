"""A row of block characters that draws a series of numbers in one line of text."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"  # one to eight eighths, U+2581 to U+2588


def sparkline(values: Sequence[float]) -> str:
    """Return one block for each value, from the least (an eighth) to the largest (whole); a flat series stays low."""
    if not values:
        return ""
    least, largest = min(values), max(values)
    span = largest - least
    return "".join(BLOCKS[round((value - least) / span * (len(BLOCKS) - 1)) if span else 0] for value in values)
