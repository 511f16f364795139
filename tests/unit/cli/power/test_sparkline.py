"""The sparkline: one block for each value, the extremes at the ends of the scale."""

from __future__ import annotations

import pytest

from jetsel.cli.power.sparkline import sparkline


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([3.0], "▁"),
        ([2.0, 2.0, 2.0], "▁▁▁"),
        ([0.0, 7.0], "▁█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([-7.0, 0.0, -3.0], "▁█▅"),
    ],
)
def test_the_least_is_an_eighth_and_the_largest_whole(values: list[float], drawn: str) -> None:
    assert sparkline(values) == drawn
