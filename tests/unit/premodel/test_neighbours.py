"""Nearest neighbours against a search of everything; cascades, judged by replay; the chain and its paths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from jetsel.calibrate.record.replay import replay
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.premodel import Chain, Neighbours, Scaling, fit_scaling, worthiest
from jetsel.premodel import neighbours as module
from jetsel.premodel.cascades import QUANTILES, FittedCascade, Outputs, fit_cascades, replay_cascade, tried_cascades
from jetsel.premodel.paths import MOST_PATHS, PathTable, neighbour_means, possible_paths, select_paths
from tests.unit.calibrate.recorded import COSTS_MS, drawn


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
)
def test_equals_the_search_of_everything(
    seed: int, n: int, features: int, scale: float, shift: float, grid: bool, block: int
) -> None:
    random = np.random.default_rng(seed)
    points = (random.integers(0, 4, (n, features)) if grid else random.random((n, features))) + shift
    queries = np.concatenate([points[:3], random.random((3, features)) + shift])
    points, queries = (points * scale).astype(np.float32), (queries * scale).astype(np.float32)
    k = int(random.integers(1, n + 1))
    neighbours = Neighbours(points)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_PRODUCTS", block)
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


EVEN = dict.fromkeys(COSTS_MS, 1.0)


def outputs(seed: int, images: int = 30) -> Outputs:
    return drawn(seed, images).table(EVEN).outputs


@given(seed=st.integers(0, 1000), thresholds=st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_judging_is_replaying_the_policy(seed: int, thresholds: list[float]) -> None:
    found = drawn(seed)
    policy = Cascade("cascade", rungs_of(found.models, thresholds))
    correct, ran = replay_cascade(FittedCascade((0, 1, 2), (*thresholds, 0.0)), outputs(seed))
    for photograph in range(len(found.classes)):
        replayed = replay(policy, found, photograph, EVEN, "l")
        assert replayed.decision is not None
        assert (replayed.decision.prediction.label == found.classes[photograph]) == correct[photograph]
        assert replayed.models_ms == ran[photograph] @ found.costs()


@given(seed=st.integers(0, 1000))
def test_all_pairs_and_thresholds_are_tried_and_none_beats_what_is_fitted_for_a_budget(seed: int) -> None:
    seen = outputs(seed)
    tried = tried_cascades(seen)
    everything = [FittedCascade((model,), (0.0,)) for model in range(3)]
    for first, last in ((0, 1), (0, 2), (1, 2)):
        thresholds = np.unique(np.quantile(seen.after((first,))[0], QUANTILES)).tolist()
        everything += [FittedCascade((first, last), (threshold, 0.0)) for threshold in thresholds]
    assert set(tried.cascades) == set(everything)
    for one, accuracy, cost in zip(tried.cascades, tried.accuracy, tried.cost, strict=True):
        correct, ran = replay_cascade(one, seen)
        assert (accuracy, cost) == pytest.approx((correct.mean(), (ran @ seen.costs).mean()))
    budgets = np.linspace(0.1, 1.3, 40)
    for budget, fitted in zip(budgets, fit_cascades(seen, budgets), strict=True):
        within = tried.cost <= budget * 10
        correct, ran = replay_cascade(fitted, seen)
        assert correct.mean() == pytest.approx(tried.accuracy[within].max())
        assert (ran @ seen.costs).mean() <= budget * 10 + 1e-9


def test_where_no_budget_is_kept_the_fastest_is_taken() -> None:
    assert fit_cascades(outputs(1), [0.01]) == [FittedCascade((0,), (0.0,))]


def test_what_was_computed_of_all_images_holds_for_some() -> None:
    rows = np.array([3, 3, 17, 0])
    whole = drawn(5).table(EVEN)
    for ran in ((0,), (0, 2)):
        for part, of_all in zip(whole.take(rows).outputs.after(ran), whole.outputs.after(ran), strict=True):
            np.testing.assert_array_equal(part, of_all[rows])


def line(right: list[list[int]], cost: list[list[float]], k: int) -> Chain:
    """A chain over points at 0, 1, 2, ... on a line, whose scaling changes nothing."""
    points = np.arange(len(right), dtype=np.float32)[:, None]
    scaling = Scaling(np.zeros(1, np.float32), np.ones(1, np.float32))
    return Chain(Neighbours(points), scaling, np.array(right, bool), np.array(cost, np.float32), k)


def test_each_path_reads_its_own_column_of_the_same_neighbours() -> None:
    chain = line([[1, 0], [1, 0], [0, 1], [0, 1]], [[1, 3], [1, 5], [1, 7], [1, 9]], k=3)
    near = chain.estimate(np.zeros(1, np.float32))  # points 0, 1, 2
    assert near.right == pytest.approx([2 / 3, 1 / 3])
    assert near.cost == pytest.approx([1, 5])
    assert near.distance == pytest.approx(1.0)
    assert (chain.overall.right.tolist(), chain.overall.cost.tolist()) == ([0.5, 0.5], [1.0, 6.0])


@pytest.mark.parametrize(
    ("right", "cost", "k", "reason"),
    [
        ([[1], [0]], [[1.0]], 1, r"right is \(2, 1\) and cost \(1, 1\)"),
        ([[1], [0]], [[1.0], [1.0]], 3, "k is 3; it must be from 1 to the 2 images"),
        ([[1], [0]], [[1.0], [1.0]], 0, "k is 0"),
    ],
)
def test_what_does_not_fit_is_refused(right: list[list[int]], cost: list[list[float]], k: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        line(right, cost, k)


@given(seed=st.integers(0, 1000), ks=st.sets(st.integers(1, 12), min_size=1))
def test_the_means_of_several_numbers_of_neighbours_are_those_of_each(seed: int, ks: set[int]) -> None:
    draw = np.random.default_rng(seed)
    right, cost = draw.random((12, 3)) < 0.5, draw.random((12, 3)).astype(np.float32)
    near = np.stack([draw.permutation(12) for _ in range(70)])
    for k, (shares, costs) in zip(sorted(ks), neighbour_means(right, cost, near, sorted(ks)), strict=True):
        np.testing.assert_allclose(shares, right[near[:, :k]].mean(axis=1), rtol=1e-5)
        np.testing.assert_allclose(costs, cost[near[:, :k]].mean(axis=1), rtol=1e-5)


def test_the_paths_are_models_and_cascades_and_those_that_no_neighbours_choose_are_left_out() -> None:
    seen = outputs(3, 400)
    possible = possible_paths(seen)
    assert [path.rungs for path in possible[:3]] == [(0,), (1,), (2,)]
    assert len(possible) == 3 + 3 * 4
    # Four neighbours for each of the first hundred images: the images themselves, and those beside them.
    near = (np.arange(100)[:, None] + np.arange(4)) % 400
    table = select_paths(seen, near)
    assert 1 < len(table.paths) <= min(MOST_PATHS, len(possible))
    again = PathTable.evaluate(table.paths, seen)
    np.testing.assert_array_equal(table.right, again.right)
    np.testing.assert_array_equal(table.ran, again.ran)
    np.testing.assert_allclose(table.cost(seen.costs), again.ran @ seen.costs, rtol=1e-6)
