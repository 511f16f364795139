"""KNN, decision tree and SVM, alone and level by level, on photographs that features tell apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.papers.taylor.techniques import Alternative, compare_techniques

SPENT_MS = np.array([1.0, 2.0, 4.0, 8.0])
FEATURES_MS = 0.5


def compare(right: NDArray[np.bool_], votes: NDArray[np.bool_], fallback: int, k: int = 5) -> dict[str, Alternative]:
    """Thirty photographs at each of four places on a line, in three folds; one row of right and votes a place."""
    place = np.arange(120) % 4
    around = place[:, None] + np.random.default_rng(0).uniform(-0.1, 0.1, (120, 1))
    found = compare_techniques(
        around.astype(np.float32),
        votes[place],
        right[place],
        SPENT_MS[: votes.shape[1]],
        np.arange(120) // 4 % 3,
        k,
        FEATURES_MS,
        fallback,
    )
    return {alternative.name: alternative for alternative in found}


TOLD = np.eye(4, dtype=bool)  # at each place another model is right, and it alone


def test_all_techniques_and_all_mixes_are_right_where_features_tell() -> None:
    found = compare(TOLD, TOLD, fallback=3)
    mixes = [".".join(mix) for mix in itertools.product(("KNN", "DT", "SVM"), repeat=3)]
    assert list(found) == ["KNN", "DT", "SVM", *mixes]
    assert {alternative.accuracy for alternative in found.values()} == {1.0}
    for alternative in found.values():  # each model answers a quarter
        assert alternative.choice_ms > FEATURES_MS
        assert alternative.time_ms == pytest.approx(SPENT_MS.mean() + alternative.choice_ms)


def test_what_is_held_out_teaches_nothing() -> None:
    # In each of two folds the places mean the opposite: what the other teaches is always wrong.
    place, fold_of = np.arange(80) % 2, np.arange(80) // 2 % 2
    votes = np.eye(2, dtype=bool)[place ^ fold_of]
    found = compare_techniques(
        place[:, None].astype(np.float32), votes, votes, SPENT_MS[:2], fold_of, 5, FEATURES_MS, fallback=1
    )
    assert {alternative.accuracy for alternative in found} == {0.0}
