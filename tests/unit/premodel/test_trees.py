"""Boosted trees walked by hand, and every fault that makes them unusable by name."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.premodel.trees import DTYPES, Trees, chances, check

LN = np.log


def of(**arrays: object) -> Trees:
    """Two trees on feature 1 and then 0 for the first of three models, one on feature 0 for the second.

    Rows 0 to 4: up to 0.5 by feature 1, leaf 1; else by feature 0 up to 2, leaf 3 or 4. Rows 5 to 7 and 8: stumps.
    """
    plain: dict[str, object] = {
        "feature": [1, 0, 0, 0, 0, 0, 0, 0, 0],
        "threshold": [0.5, 0, 2, 0, 0, -1, 0, 0, 0],
        "left": [1, 1, 3, 3, 4, 6, 6, 7, 8],
        "right": [2, 1, 4, 3, 4, 7, 6, 7, 8],
        "value": [0, LN(2), 0, LN(3), LN(5), 0, LN(7), LN(1 / 7), LN(4)],
        "root": [0, 5, 8],
        "model": [0, 1, 0],
        "baseline": [0, 0, LN(1 / 4)],
    }
    return Trees(**{name: np.array(values, DTYPES[name]) for name, values in (plain | arrays).items()})


def at(*features: float) -> NDArray[np.float32]:
    return np.array(features, np.float32)


@pytest.mark.parametrize(
    ("x", "odds"),
    [
        (at(0, 0.4), (2 * 4, 1 / 7)),
        (at(-1, 0.5), (2 * 4, 7)),  # up to the threshold and with it the walk goes left
        (at(2, 0.6), (3 * 4, 1 / 7)),
        (at(2.1, 0.6), (5 * 4, 1 / 7)),
    ],
)
def test_the_chances_by_hand(x: NDArray[np.float32], odds: tuple[float, float]) -> None:
    # Leaves are logarithms of odds: those of a model's trees and baseline are multiplied. No tree is about the third.
    expected = [odds[0] / (1 + odds[0]), odds[1] / (1 + odds[1]), 1 / 5]
    assert chances(of(), x) == pytest.approx(expected)


def test_a_threshold_is_compared_as_precisely_as_it_was_found() -> None:
    # 0.1 is 0.10000000149 in float32, over a threshold of 0.1 in float64.
    trees = of(threshold=[0.1, 0, 2, 0, 0, -1, 0, 0, 0])
    assert chances(trees, at(0, 0.1))[0] == pytest.approx(12 / 13)


def test_a_circle_does_not_walk_for_ever() -> None:
    found = chances(of(left=[2, 1, 0, 3, 4, 6, 6, 7, 8], right=[2, 1, 0, 3, 4, 6, 6, 7, 8]), at(0, 0))
    assert ((found >= 0) & (found <= 1)).all()


def test_whole_trees_have_no_fault() -> None:
    check(of(), features=2, models=3)
    check(of(root=[], model=[]), features=2, models=3)  # every model is always or never right


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"threshold": [0.5] * 8}, "its nodes are not all described"),
        ({name: [] for name in ("feature", "threshold", "left", "right", "value")}, "not all described"),
        ({"model": [0, 1]}, "a model for each tree"),
        ({"baseline": [0, 0]}, "a baseline for each of 3 models"),
        ({"feature": [2] + [0] * 8}, "more than 2 features"),
        ({"model": [0, 1, 3]}, "or 3 models"),
        ({"root": [0, 5, 9]}, "a child lies outside the table"),
        ({"threshold": [np.nan] + [0] * 8}, "not finite"),
    ],
)
def test_every_fault_is_named(arrays: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check(of(**arrays), features=2, models=3)
