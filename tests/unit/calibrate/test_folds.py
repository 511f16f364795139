"""Photographs dealt into folds: groups whole, sizes even."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.folds import assign_folds


@given(st.lists(st.integers(0, 40), min_size=1, max_size=120), st.integers(1, 10), st.integers(0, 100))
def test_groups_stay_together_and_folds_are_even(groups: list[int], folds: int, seed: int) -> None:
    of_groups = np.array(groups)
    if len(set(groups)) < folds:
        with pytest.raises(CalibrationError, match="too few"):
            assign_folds(of_groups, folds, seed)
        return
    fold_of = assign_folds(of_groups, folds, seed)
    for group in set(groups):
        assert len(set(fold_of[of_groups == group].tolist())) == 1
    sizes = np.bincount(fold_of, minlength=folds)
    assert len(sizes) == folds
    assert sizes.min() > 0
    assert sizes.max() - sizes.min() <= np.bincount(of_groups).max()  # no more than one group apart
    assert fold_of.tolist() == assign_folds(of_groups, folds, seed).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_a_large_group_has_a_fold_to_itself(seed: int) -> None:
    fold_of = assign_folds(np.array([0, 1, 9, 9, 9, 9, 2, 3]), 2, seed)
    assert set(fold_of[2:6].tolist()).isdisjoint(fold_of[[0, 1, 6, 7]].tolist())
