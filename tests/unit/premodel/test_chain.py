"""The chain by hand, and level by level against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from jetsel.premodel import Chain, Choice, Neighbours, Scaling, optimum_votes
from tests.unit.premodel.fitted import fit_chain

MODELS = ("small", "middle", "large")


def line(votes: list[list[int]], k: int) -> Chain:
    """A chain over points at 0, 1, 2, ... on a line, whose scaling changes nothing."""
    points = np.arange(len(votes), dtype=np.float32)[:, None]
    scaling = Scaling(np.zeros(1, np.float32), np.ones(1, np.float32))
    return Chain(MODELS, np.array(votes, bool), Neighbours(points), scaling, k)


def at(x: float) -> NDArray[np.float32]:
    return np.array([x], np.float32)


def test_the_first_link_with_a_majority_is_chosen() -> None:
    chain = line([[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1], [0, 0, 0], [0, 0, 1], [0, 0, 0]], k=3)
    assert chain.choose(at(0)) == Choice("small", 1.0, (2, 1, 1))  # points 0, 1, 2; (0 + 1 + 2) / 3 away
    assert chain.choose(at(2)) == Choice("middle", 2 / 3, (1, 2, 2))  # points 2, 1, 3: large has a majority as well


@pytest.mark.parametrize(
    ("costs", "optimum"),
    [
        ([1, 2, 3], [0, 1, 2, 0]),
        ([9, 5, 7], [1, 1, 2, 2]),  # by the costs, not by the columns
        ([4, 4, 4], [0, 1, 2, 0]),  # of equals the first
    ],
)
def test_the_optimum_is_the_cheapest_that_is_right(costs: list[int], optimum: list[int]) -> None:
    right = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 0, 0]], bool)
    votes = optimum_votes(right, costs)
    assert votes[:4].argmax(axis=1).tolist() == optimum
    assert votes.sum(axis=1).tolist() == [1, 1, 1, 1, 0], "nobody is right: no vote"


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 120),
    features=st.integers(1, 7),
    models=st.integers(1, 4),
    k=st.integers(1, 11),
)
def test_every_link_equals_scikit_learn(seed: int, n: int, features: int, models: int, k: int) -> None:
    sklearn = pytest.importorskip("sklearn.neighbors")
    random = np.random.default_rng(seed)
    train = random.random((n, features), dtype=np.float32) * 50  # continuous: no two distances are equal
    queries = random.random((20, features), dtype=np.float32) * 60 - 5
    right = random.random((n, models)) < 0.6
    costs = random.permutation(models) + 1.0
    names = tuple("abcd"[:models])
    chain = fit_chain(names, train, right, costs.tolist(), k)

    low, high = train.min(axis=0).astype(float), train.max(axis=0).astype(float)
    table = optimum_votes(right, costs.tolist())
    levels = []
    for column in range(models):
        classifier = sklearn.KNeighborsClassifier(n_neighbors=k, algorithm="brute")
        classifier.fit(((train - low) / (high - low)).astype(np.float32), table[:, column])
        levels.append(classifier.predict(((queries - low) / (high - low)).astype(np.float32)))

    choices = [chain.choose(x) for x in queries]
    for column, level in enumerate(levels):
        assert [choice.votes[column] * 2 > k for choice in choices] == level.tolist()
    first = [next((name for name, level in zip(names, levels, strict=True) if level[i]), None) for i in range(20)]
    assert [choice.model for choice in choices] == first
