"""The kernels that Pillow shrinks with, by hand; tests/export compares them with torchvision's own transforms."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.image.antialias import Side, antialiased


def whole(source_px: int, scaled_px: int) -> Side:
    return Side(source_px, scaled_px, 0, scaled_px)


def grey(rows: list[list[int]]) -> np.ndarray:
    return np.repeat(np.array(rows, np.uint8)[:, :, np.newaxis], 3, axis=2)


def test_halving_weighs_four_pixels_by_a_triangle() -> None:
    # The centre of the second of three lies at 3 of 6; at half the scale the triangle ends 2 from it. Centres of pixels
    # at 1.5, 2.5, 3.5, 4.5 are 1.5, 0.5, 0.5, 1.5 away: weights 1/4, 3/4, 3/4, 1/4 of 2.
    row = [[10, 20, 30, 70, 110, 90]]
    got = antialiased(grey(row), whole(1, 1), whole(6, 3), "bilinear")
    assert got.shape == (1, 3, 3)
    assert got[0, 1, 0] == pytest.approx((20 + 3 * 30 + 3 * 70 + 110) / 8)
    # At the edge there is nothing to the left: 1.0 from it lie 0.5, 0.5 and 1.5: weights 3/4, 3/4, 1/4 of 7/4.
    assert got[0, 0, 0] == pytest.approx((3 * 10 + 3 * 20 + 30) / 7)


def test_bicubic_weighs_eight_by_keys_kernel() -> None:
    # Keys with a = -1/2 at distances 1/4, 3/4, 5/4, 7/4, for which (128 times) it is 111, 29, -9, -3: 2 * 128 in all.
    # The centre of the third of five lies at 5 of 10: that of pixel 4 is 0.5 from it, which is 1/4 at half the scale.
    for place, weight in ((4, 111), (3, 29), (2, -9), (8, -3)):
        row = [[128 if column == place else 0 for column in range(10)]]
        got = antialiased(grey(row), whole(1, 1), whole(10, 5), "bicubic")
        assert got[0, 2, 0] == pytest.approx(max(128 * weight / 256, 0), abs=1e-4)  # below 0 there is no level
    row = [[255 if column in (1, 2, 7, 8) else 128 for column in range(10)]]
    got = antialiased(grey(row), whole(1, 1), whole(10, 5), "bicubic")
    assert got[0, 2, 0] == pytest.approx((128 * 2 * (111 + 29) + 255 * 2 * (-9 - 3)) / 256)


def test_a_part_is_what_stands_there_in_the_whole() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    for kernel in ("bilinear", "bicubic"):
        everything = antialiased(pixels, whole(37, 20), whole(53, 29), kernel)
        part = antialiased(pixels, Side(37, 20, 4, 9), Side(53, 29, 11, 10), kernel)
        np.testing.assert_allclose(part, everything[4:13, 11:21], atol=1e-4)
