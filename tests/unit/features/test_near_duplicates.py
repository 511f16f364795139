"""Near-duplicates share a group and a fold: by hand, against every pair compared, on distorted photographs."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.base.errors import CalibrationError
from jetsel.features import near_duplicates
from jetsel.features.near_duplicates import assign_folds, groups, perceptual_hash
from tests.unit.calibrate.record.making import draw


def numbers(*hashes: int) -> np.ndarray:
    return np.array(hashes, np.int64)


def test_groups_by_hand() -> None:
    # 0b0011 and 0b0000 differ in 2 bits, 0b1111 and 0b0011 in 2, 0b1111 and 0b0000 in 4: joined by the middle one.
    chained = numbers(-1, 0b1111, 0b0000, 0b0011, -1)
    assert groups(chained, 2).tolist() == [0, 1, 1, 1, 0]
    assert groups(chained, 1).tolist() == [0, 1, 2, 3, 0]
    assert groups(numbers(), 2).tolist() == []
    assert groups(numbers(0, -1), 63).tolist() == [0, 1]
    assert groups(numbers(0, -1), 64).tolist() == [0, 0]


def test_groups_over_several_blocks_are_those_of_comparing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "_ROWS", 7)
    chosen = np.random.default_rng(3).integers(0, 2**16, 60, dtype=np.int64)  # of 16 bits, so that many are close
    differing = np.array([[bin(int(a) ^ int(b)).count("1") for b in chosen] for a in chosen])
    reached = differing <= 2
    for _ in range(6):  # paths of up to 64 steps
        reached = (reached.astype(int) @ reached.astype(int)) > 0
    found = groups(chosen, 2)
    assert np.array_equal(found[:, None] == found[None, :], reached)
    assert 1 < len(set(found.tolist())) < 60


def test_the_same_photograph_saved_again_or_resized_is_near_and_others_are_not() -> None:
    photographs = [draw(seed) for seed in range(8)]
    changed = [
        cv2.imdecode(cv2.imencode(".jpg", cv2.resize(p, (192, 144)), [cv2.IMWRITE_JPEG_QUALITY, 50])[1], 1)
        for p in photographs
    ]
    hashes = numbers(*(perceptual_hash(p) for p in [*photographs, *changed]))
    assert groups(hashes).tolist() == [*range(8), *range(8)]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=120), st.integers(1, 10), st.integers(0, 100))
def test_groups_stay_together_and_folds_are_even(drawn: list[int], folds: int, seed: int) -> None:
    of_groups = np.array(drawn)
    if len(set(drawn)) < folds:
        with pytest.raises(CalibrationError, match="too few"):
            assign_folds(of_groups, folds, seed)
        return
    fold_of = assign_folds(of_groups, folds, seed)
    for group in set(drawn):
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
