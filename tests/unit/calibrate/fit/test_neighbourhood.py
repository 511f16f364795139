"""Neighbours of other folds on a line of six, and the chain they make against the premodel's own, fold by fold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetsel.calibrate.fit.features import chosen_right
from jetsel.calibrate.fit.folds import nearest_in_other_folds
from jetsel.premodel import optimum_votes
from tests.unit.premodel.fitted import fit_chain

LINE = np.array([[0], [1], [2.4], [3], [4.2], [10]], np.float32)
ODD = np.arange(6) % 2  # the folds: 0, 2.4 and 4.2 against 1, 3 and 10


def test_the_neighbours_by_hand_scaled_by_the_other_folds() -> None:
    found = nearest_in_other_folds(LINE, ODD, 5)  # the other folds hold three
    # From 0: 1, 3, 10, which are 1 to 10, a range of 9. From 1: 0, 2.4, 4.2, a range of 4.2. And so on.
    assert found.near.tolist() == [[1, 3, 5], [0, 2, 4], [3, 1, 5], [2, 4, 0], [3, 1, 5], [4, 2, 0]]
    assert found.distance[[0, 1, 5]] == pytest.approx([14 / 3 / 9, 5.6 / 3 / 4.2, 23.4 / 3 / 4.2])


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**31),
    photographs=st.integers(8, 60),
    folds=st.integers(2, 5),
    k=st.integers(1, 9),
    models=st.integers(1, 4),
)
def test_the_choices_are_the_premodel_s_fold_by_fold(
    seed: int, photographs: int, folds: int, k: int, models: int
) -> None:
    draw = np.random.default_rng(seed)
    features = draw.random((photographs, 3), dtype=np.float32) * 40
    fold_of = draw.permutation(np.arange(photographs) % folds)
    right = draw.random((photographs, models)) < 0.6
    costs = draw.permutation(models) + 1.0
    links = draw.permutation(models)[: draw.integers(1, models + 1)].tolist()
    found = nearest_in_other_folds(features, fold_of, k)
    k = found.near.shape[1]
    votes = optimum_votes(right[:, links], costs[links])
    chosen = chosen_right(found.near, votes, right[:, [*links, -1]], len(links))
    for fold in range(folds):
        rest = fold_of != fold
        chain = fit_chain([str(i) for i in links], features[rest], right[rest][:, links], costs[links].tolist(), k)
        for row in np.flatnonzero(~rest):
            choice = chain.choose(features[row])
            assert found.distance[row] == pytest.approx(choice.distance)
            assert chosen[row] == right[row, models - 1 if choice.model is None else int(choice.model)]
