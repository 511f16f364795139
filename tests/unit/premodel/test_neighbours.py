"""Nearest neighbours by hand, and against a search of everything in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from jetsel.premodel import Neighbours, Scaling, fit_scaling, worthiest
from jetsel.premodel import neighbours as module


def test_the_training_range_becomes_zero_to_one_and_a_constant_feature_zero() -> None:
    scaling = fit_scaling(np.array([[10, 5, -2], [30, 5, 2], [20, 5, -1]], np.float32))
    assert scaling.minimum.tolist() == [10, 5, -2]
    assert scaling.maximum.tolist() == [30, 5, 2]
    scaled = scaling.apply(np.array([[10, 5, -2], [30, 5, 2], [20, 5, -1]], np.float32))
    assert scaled.dtype == np.float32
    assert scaled.tolist() == [[0, 0, 0], [1, 0, 1], [0.5, 0, 0.25]]
    unseen = scaling.apply(np.array([[50, 99, 0], [0, -99, 0]], np.float32))
    assert unseen.tolist() == [[2, 0, 0.5], [-0.5, 0, 0.5]], "not clipped"


def test_the_widest_range_of_float32_does_not_overflow() -> None:
    huge = np.float32(3e38)
    scaling = fit_scaling(np.array([[-huge], [huge]], np.float32))
    assert scaling.apply(np.array([[-huge], [0], [huge]], np.float32)).ravel().tolist() == [0, 0.5, 1]


@pytest.mark.parametrize(
    ("minimum", "maximum"),
    [([0, 0], [1]), ([[0]], [[1]]), ([2], [1]), ([0], [np.inf]), ([np.nan], [1])],
)
def test_a_range_that_is_none_is_refused(minimum: list[float], maximum: list[float]) -> None:
    with pytest.raises(ValueError, match="minimum"):
        Scaling(np.array(minimum, np.float32), np.array(maximum, np.float32))


def f32(values: object) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def exhaustive(points: NDArray[np.float32], x: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    offsets = points.astype(np.float64) - x.astype(np.float64)
    return np.lexsort((np.arange(len(points)), (offsets * offsets).sum(axis=1)))[:k]


def test_differences_that_float32_scores_cannot_see_still_decide() -> None:
    # Squares near 1e6 leave float32 steps of 0.06: the scores of these points are one and the same
    points = f32([[1000 + 3 * 2**-14], [1000 + 2 * 2**-14], [1000 + 1 * 2**-14], [0]])
    rows, distances = Neighbours(points).nearest(f32([1000]), 3)
    assert rows.tolist() == [2, 1, 0]
    assert distances.tolist() == [2**-14, 2 * 2**-14, 3 * 2**-14]


@pytest.mark.parametrize("far", [1e6, 1e20, 3e38])
def test_a_query_far_away_is_still_exact(far: float) -> None:
    rows, _ = Neighbours(f32([[0, 0], [1, 0], [0, 1]])).nearest(f32([far, 0]), 3)
    # where float64 itself cannot tell the points apart from so far, they tie
    assert rows.tolist() == ([1, 0, 2] if far < 1e10 else [0, 1, 2])


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 300),
    features=st.integers(1, 8),
    scale=st.sampled_from([1e-20, 1e-3, 1.0, 1e3, 1e13]),
    shift=st.sampled_from([0.0, 1.0, 1e4]),
    grid=st.booleans(),
    block=st.sampled_from([1, 64, module.BLOCK_PRODUCTS]),
    sample=st.sampled_from([1, 8, 64, module.SAMPLE_SCORES]),
)
def test_equals_the_search_of_everything(
    seed: int, n: int, features: int, scale: float, shift: float, grid: bool, block: int, sample: int
) -> None:
    random = np.random.default_rng(seed)
    points = (random.integers(0, 4, (n, features)) if grid else random.random((n, features))) + shift
    queries = np.concatenate([points[:3], random.random((3, features)) + shift])
    points, queries = (points * scale).astype(np.float32), (queries * scale).astype(np.float32)
    k = int(random.integers(1, n + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_PRODUCTS", block)
        patch.setattr(module, "SAMPLE_SCORES", sample)
        neighbours = Neighbours(points)
        rows, distances = neighbours.nearest_many(queries, k)
    for x, row, distance in zip(queries, rows, distances, strict=True):
        expected = exhaustive(points, x, k)
        assert row.tolist() == expected.tolist()
        np.testing.assert_allclose(distance, np.linalg.norm(points[expected].astype(float) - x, axis=1), rtol=1e-12)
        together, apart = neighbours.nearest_set(x, k)
        assert together.tolist() == sorted(row.tolist())
        np.testing.assert_array_equal(np.sort(apart), distance)


@pytest.mark.parametrize("points", [np.zeros((0, 2)), np.zeros(3), [[np.nan]], [[np.inf]], [[1e30]]])
def test_points_that_cannot_be_searched_are_refused(points: object) -> None:
    with pytest.raises(ValueError, match="points must be"):
        Neighbours(f32(points))


@pytest.mark.parametrize(("x", "k"), [([0], 1), ([0, 0], 0), ([0, 0], 4), ([0, np.nan], 1), ([0, np.inf], 1)])
def test_queries_that_make_no_sense_are_refused(x: list[float], k: int) -> None:
    with pytest.raises(ValueError, match="x "):
        Neighbours(f32([[0, 0], [1, 1], [2, 2]])).nearest(f32(x), k)


def test_of_equals_the_first_and_each_row_for_itself() -> None:
    chances = np.array([[0.5, 0.5], [0.4, 0.9], [0.9, 0.9]])
    assert worthiest(chances, np.array([0.0, 0.0]), 1.0).tolist() == [0, 1, 0]
    assert worthiest(chances, np.array([1.0, 0.0]), 1.0).tolist() == [1, 1, 1]
