"""Near-duplicates share a group: worked by hand, against every pair compared, and on distorted photographs."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jetsel.calibrate.record import examine
from jetsel.calibrate.record.examine import groups, perceptual_hash
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
    monkeypatch.setattr(examine, "_ROWS", 7)
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


def test_flat_photographs_of_any_level_are_near() -> None:
    flat = [np.full((50, 70, 3), level, np.uint8) for level in (1, 100, 255)]
    assert len({perceptual_hash(photograph) for photograph in flat}) == 1
