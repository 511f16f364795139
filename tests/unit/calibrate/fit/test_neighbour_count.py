"""How many neighbours vote, on four photographs on a line."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.calibrate.fit.neighbour_count import accuracy_by_k, best_k

LINE = np.array([[0.0], [0.1], [1.0], [0.9]], np.float32)
VOTES = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)  # two on the left for the first model, two on the right


@pytest.mark.parametrize(
    ("fold_of", "expected"),
    [
        # A twin in another fold is the nearest, and right. Of two neighbours it is half: in doubt the second model
        # answers, which is right on the right side.
        ([0, 1, 0, 1], {1: 100.0, 2: 50.0}),
        # The twin in the own fold is nearer than any other, and would be right; it does not vote.
        ([0, 0, 1, 1], {1: 0.0, 2: 0.0}),
        ([0, 1, 2, 3], {1: 100.0, 2: 50.0, 3: 0.0}),  # of three neighbours two are on the other side
    ],
)
def test_neighbours_of_the_own_fold_never_vote(fold_of: list[int], expected: dict[int, float]) -> None:
    found = accuracy_by_k(LINE, VOTES, VOTES, np.array(fold_of), fallback=1, tried=(1, 2, 3, 4))
    assert found == expected  # no k over what the other folds hold


def test_the_best_k_is_the_most_accurate_and_of_equals_the_smallest() -> None:
    assert best_k({1: 50.0, 3: 70.0, 5: 70.0, 7: 60.0}) == 3
