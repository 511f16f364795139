"""What the boxes of a message cost, counted before the image is decoded."""

from __future__ import annotations

import pytest

from jetsel.daemon.crops import pixels_of
from jetsel.wire import Boxes


@pytest.mark.parametrize(
    ("unit", "xywh", "pixels"),
    [
        ("pixels", [[0.0, 0.0, 10.0, 20.0], [90.0, 40.0, 20.0, 20.0]], 10 * 20 + 10 * 10),
        ("shares", [[0.0, 0.0, 0.5, 0.5], [0.5, 0.0, 0.5, 1.0]], 50 * 25 + 50 * 50),
        ("pixels", [[0.0, 0.0, 100.0, 50.0]] * 64, 64 * 100 * 50),
        ("pixels", [[200.0, 0.0, 10.0, 10.0], [1.0], [None, 0.0, 9.0, 9.0]], 0),
    ],
    ids=["cut at the edge", "shares", "each is the whole image", "boxes that fail"],
)
def test_each_box_counts_with_the_pixels_that_it_has_inside_the_image(
    unit: str, xywh: list[list[float | None]], pixels: int
) -> None:
    assert pixels_of(Boxes(unit, xywh), 100, 50) == pixels  # type: ignore[arg-type]
