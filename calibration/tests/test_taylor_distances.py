"""Which features do not repeat one another; distances, votes and neighbours of other folds by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from calibration.papers.taylor.distances import Distances, chosen_right, drop_correlated, nearest_columns
from calibration.papers.taylor.folds import nearest_in_other_folds

# Three patterns of four photographs, of mean 0, with no correlation: a mix has those of its weights.
A, B, C = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]], float)


def columns(*of: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.stack(of, axis=1).astype(np.float32)


@pytest.mark.parametrize(("weight", "kept"), [(0.74, ("x", "y")), (0.76, ("x",)), (-0.76, ("x",)), (-0.74, ("x", "y"))])
def test_the_threshold_is_of_the_absolute_correlation(weight: float, kept: tuple[str, ...]) -> None:
    table = columns(5 * A + 100, weight * A + np.sqrt(1 - weight**2) * B)  # scale and offset do not matter
    assert drop_correlated(table, ("x", "y"), documented=())[0] == kept


def test_what_was_dropped_drops_nothing() -> None:
    # y is like x and like z, which are not like each other: 0.8 and 0.6 times 0.6 and 0.8.
    table = columns(A, 0.8 * A + 0.6 * B, 0.28 * A + 0.96 * B)
    names = ("x", "y", "z")  # x and z: 0.28; y and z: 0.8 x 0.28 + 0.6 x 0.96 = 0.8
    assert drop_correlated(table, names, documented=())[0] == ("x", "z")
    kept, removed = drop_correlated(table, names, documented=("y",))
    assert kept == ("y",)
    assert removed == {"y": [("x", pytest.approx(0.8)), ("z", pytest.approx(0.8))]}


def test_a_constant_says_nothing_and_is_dropped_under_its_own_name() -> None:
    table = columns(A, np.full(4, 0.1), C)
    assert drop_correlated(table, ("x", "flat", "z"), documented=("flat",)) == (("x", "z"), {"flat": [("flat", None)]})


def test_the_paper_s_own_seven_are_the_documented_ones() -> None:
    table = columns(A, A)
    kept, removed = drop_correlated(table, ("avg_brightness", "avg_perceived_brightness"))
    assert kept == ("avg_perceived_brightness",)  # Table 3
    assert removed == {"avg_perceived_brightness": [("avg_brightness", pytest.approx(1.0))]}


def test_distances_by_hand_are_of_scaled_features_and_infinite_within_a_fold() -> None:
    # Scaled: the first to 0, 0.5 and 1, the second to 0, 1 and 0.
    found = Distances(np.array([[10, 0], [20, 4], [30, 0]], np.float32), np.array([0, 1, 1]))
    assert found.of(0).tolist() == [[0, 0.25, 1], [0.25, 0, 0.25], [1, 0.25, 0]]
    inf = np.inf
    assert found.total([0, 1]).tolist() == [[inf, 1.25, 1], [1.25, inf, inf], [1, inf, inf]]


def test_the_first_majority_chooses_and_in_doubt_the_fallback() -> None:
    votes = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], bool)
    right = np.array([[1, 0], [0, 1], [1, 0], [1, 0]], bool)
    inf = np.inf
    squared = np.array([[inf, 1, 2, 9], [1, inf, 2, 9], [1, 9, inf, 2], [9, 9, 1, inf]], np.float32)
    # Two neighbours each. Photograph 0 asks 1 and 2: both vote for column 1, one for 0. Photograph 1 asks 0 and 2: one
    # each, no majority; photograph 2 asks 0 and 3: one; photograph 3 asks 2 and one of the others.
    chosen = chosen_right(nearest_columns(squared, 2), votes, right, fallback=0)
    assert chosen[:3].tolist() == [False, False, True]
    assert chosen_right(nearest_columns(squared, 2), votes, right, fallback=1)[:3].tolist() == [False, True, False]
    # One neighbour: 1 says column 0 first, though it votes for both.
    assert chosen_right(nearest_columns(squared, 1), votes, right, fallback=1).tolist() == [True, False, True, False]


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 5),
    columns=st.integers(1, 300),
    k=st.integers(1, 20),
    values=st.sampled_from([2, 9, 10**6]),  # the fewer, the more are equal
)
def test_the_nearest_are_the_first_of_all_sorted(seed: int, rows: int, columns: int, k: int, values: int) -> None:
    draw = np.random.default_rng(seed)
    squared = np.where(draw.random((rows, columns)) < 0.1, np.inf, draw.integers(0, values, (rows, columns)))
    k = min(k, columns)
    assert nearest_columns(squared, k).tolist() == squared.argsort(axis=1, kind="stable")[:, :k].tolist()


def test_what_removed_features_leave_behind_does_not_hide_the_near() -> None:
    # 99 photographs on a line, a step of 1e-4 apart but for the last, beside 30 features that are noise: what float32
    # loses of a sum of 30 is more than the squared step, 1e-8.
    draw = np.random.default_rng(5)
    line = np.append(np.arange(99) * 1e-4, 1.0)
    features = np.column_stack([line, draw.random((100, 30))]).astype(np.float32)
    fold_of = np.arange(100) % 2  # the twin of each pair is in the other fold
    distances = Distances(features, fold_of)
    left = distances.total(range(31))
    for column in range(1, 31):
        left -= distances.of(column)
    alone = distances.total([0])
    assert nearest_columns(left, 2).tolist() == nearest_columns(alone, 2).tolist()


LINE = np.array([[0], [1], [2.4], [3], [4.2], [10]], np.float32)
ODD = np.arange(6) % 2  # the folds: 0, 2.4 and 4.2 against 1, 3 and 10


def test_the_neighbours_by_hand_scaled_by_the_other_folds() -> None:
    found = nearest_in_other_folds(LINE, ODD, 5)  # the other folds hold three
    # From 0: 1, 3, 10, which are 1 to 10, a range of 9. From 1: 0, 2.4, 4.2, a range of 4.2. And so on.
    assert found.near.tolist() == [[1, 3, 5], [0, 2, 4], [3, 1, 5], [2, 4, 0], [3, 1, 5], [4, 2, 0]]
    assert found.distance[[0, 1, 5]] == pytest.approx([14 / 3 / 9, 5.6 / 3 / 4.2, 23.4 / 3 / 4.2])
