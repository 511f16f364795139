"""The chain by hand, and the paths that it chooses among."""

import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.premodel import Chain, Neighbours, Scaling
from jetsel.premodel.paths import MOST_PATHS, PathTable, neighbour_means, possible_paths, select_paths
from tests.unit.calibrate.recorded import COSTS_MS, drawn

EVEN = dict.fromkeys(COSTS_MS, 1.0)


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
    outputs = drawn(3, 400).table(EVEN).outputs
    possible = possible_paths(outputs)
    assert [path.rungs for path in possible[:3]] == [(0,), (1,), (2,)]
    assert len(possible) == 3 + 3 * 4
    # Four neighbours for each of the first hundred images: the images themselves, and those beside them.
    near = (np.arange(100)[:, None] + np.arange(4)) % 400
    table = select_paths(outputs, near)
    assert 1 < len(table.paths) <= min(MOST_PATHS, len(possible))
    again = PathTable.evaluate(table.paths, outputs)
    np.testing.assert_array_equal(table.right, again.right)
    np.testing.assert_array_equal(table.ran, again.ran)
    np.testing.assert_allclose(table.cost(outputs.costs), again.ran @ outputs.costs, rtol=1e-6)


def test_images_that_hardly_differ_are_searched_once_and_a_chain_that_was_replaced_is_freed() -> None:
    chain = line([[1], [0], [0], [0]], [[1], [1], [1], [1]], k=2)
    near = chain.estimate(np.zeros(1, np.float32))
    assert chain.estimate(np.full(1, 0.0004, np.float32)) is near, "less than half of a thousandth"
    assert not near.right.flags.writeable
    assert (near.right.tolist(), chain.estimate(np.full(1, 3, np.float32)).right.tolist()) == ([0.5], [0.0])
    with pytest.raises(ValueError, match="finite"):
        chain.estimate(np.full(1, np.nan, np.float32))
    freed = weakref.ref(chain)
    del chain
    assert freed() is None  # by its count of references: the daemon collects no cycles among what it has frozen
