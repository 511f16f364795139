"""Shares among neighbours and the model that is worth its time, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.premodel import Neighbours, shares, worthiest

POINTS = np.array([[0], [1], [2], [10]], np.float32)
TABLE = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], bool)


def test_shares_by_hand() -> None:
    points = Neighbours(POINTS)
    assert shares(points, TABLE, 3, np.array([0.4], np.float32)) == pytest.approx([2 / 3, 2 / 3])  # rows 0, 1, 2
    assert shares(points, TABLE, 3, np.array([9], np.float32)) == pytest.approx([1 / 3, 2 / 3])  # rows 3, 2, 1
    assert shares(points, TABLE, 1, np.array([1.2], np.float32)).tolist() == [1, 1]


def test_of_equals_the_first_and_each_row_for_itself() -> None:
    chances = np.array([[0.5, 0.5], [0.4, 0.9], [0.9, 0.9]])
    assert worthiest(chances, np.array([0.0, 0.0]), 1.0).tolist() == [0, 1, 0]
    assert worthiest(chances, np.array([1.0, 0.0]), 1.0).tolist() == [1, 1, 1]
