"""Boosted trees as arrays say what scikit-learn says, and what is left of them without it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from jetsel.policies.boosted import LEARNING_RATE, LEAVES, ROUNDS, SEED, grow
from jetsel.premodel import chances
from jetsel.premodel.trees import DTYPES, check


@settings(max_examples=8)
@given(seed=st.integers(0, 2**31), photographs=st.integers(30, 300), width=st.integers(1, 5), coarse=st.booleans())
def test_the_chances_are_scikit_learn_s(seed: int, photographs: int, width: int, coarse: bool) -> None:
    draw = np.random.default_rng(seed)
    features = (draw.normal(size=(photographs, width)) * 50).astype(np.float32)
    queries = (draw.normal(size=(20, width)) * 60).astype(np.float32)
    if coarse:  # whole numbers, so that thresholds are halves, and queries that lie on them
        features, queries = np.round(features / 20), np.round(queries / 10) / 2
    right = np.column_stack([features[:, 0] + 30 * draw.normal(size=photographs) > 0, draw.random(photographs) < 0.7])
    right[:2] = [[True, False], [False, True]]
    trees = grow(features, right)
    assert trees is not None
    check(trees, width, 2)
    assert {name: array.dtype.str for name, array in trees._asdict().items()} == DTYPES
    found = np.stack([chances(trees, x) for x in queries])
    for model in range(2):
        theirs = HistGradientBoostingClassifier(
            max_iter=ROUNDS, max_leaf_nodes=LEAVES, learning_rate=LEARNING_RATE, random_state=SEED
        )
        with threadpool_limits(1):
            expected = theirs.fit(features, right[:, model]).predict_proba(queries)[:, 1]
        assert found[:, model] == pytest.approx(expected, abs=1e-5)


def test_a_model_that_is_always_or_never_right_needs_no_trees() -> None:
    draw = np.random.default_rng(2)
    features = draw.random((60, 2), dtype=np.float32)
    right = np.column_stack([np.ones(60), features[:, 1] > 0.5, np.zeros(60)]).astype(bool)
    trees = grow(features, right)
    assert trees is not None
    assert set(trees.model.tolist()) == {1}
    always, told, never = chances(trees, np.array([0.5, 0.9], np.float32))
    assert always == pytest.approx(1, abs=1e-5)
    assert told > 0.7
    assert never == pytest.approx(0, abs=1e-5)


def test_a_model_that_is_wrong_on_one_photograph_of_very_many() -> None:
    features = np.arange(10_001, dtype=np.float32)[:, None]
    trees = grow(features, features > 0)
    assert trees is not None
    assert chances(trees, features[5_000])[0] > 0.99


def test_without_scikit_learn_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    assert grow(np.zeros((5, 3), np.float32), np.ones((5, 2), bool)) is None
