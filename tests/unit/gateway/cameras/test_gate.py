"""A frame that hardly differs from the last one that was answered is skipped, and what that saves is counted."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.gateway.cameras.gate import Gate


def gray(level: int) -> np.ndarray:
    return np.full((120, 160, 3), level, np.uint8)


def test_what_hardly_differs_from_the_answered_frame_is_skipped() -> None:
    gate = Gate(2.0)
    assert not gate.skips(gray(100))
    gate.answered(5.0, None)
    assert [gate.skips(gray(level)) for level in (100, 101, 98)] == [True, True, False]


def test_a_slow_change_adds_up_as_frames_are_compared_with_the_answered_one() -> None:
    gate = Gate(2.0)
    gate.skips(gray(100))
    gate.answered(5.0, None)
    assert [gate.skips(gray(level)) for level in (101, 102)] == [True, False]


def test_a_frame_without_an_answer_is_asked_about_again() -> None:
    gate = Gate(2.0)
    assert not gate.skips(gray(100))
    assert not gate.skips(gray(100))


def test_nothing_is_skipped_at_0_nor_after_forgetting() -> None:
    off, on = Gate(0.0), Gate(2.0)
    for gate in (off, on):
        gate.skips(gray(100))
        gate.answered(5.0, None)
    on.forget()
    assert not off.skips(gray(100))
    assert not on.skips(gray(100))


def test_a_small_part_that_changes_counts_by_its_share_of_the_frame() -> None:
    gate = Gate(2.0)
    gate.skips(gray(100))
    gate.answered(5.0, None)
    moved = gray(100)
    moved[:60, :80] = 107  # a quarter, 7 levels: 1.75 in the mean
    assert gate.skips(moved)
    moved[:60, :80] = 110  # 2.5
    assert not gate.skips(moved)


def test_gray_frames_are_compared_too() -> None:
    gate = Gate(2.0)
    gate.skips(gray(100)[:, :, 0])
    gate.answered(5.0, None)
    assert gate.skips(gray(101)[:, :, 0])


def test_savings_are_at_the_mean_of_the_answered_and_unknown_without_any() -> None:
    gate = Gate(2.0)
    assert (gate.saved_ms, gate.saved_mj) == (None, None)
    for level, took_ms, energy_mj in ((50, 4.0, 30.0), (100, 6.0, None)):
        gate.skips(gray(level))
        gate.answered(took_ms, energy_mj)
    assert [gate.skips(gray(100)) for _ in range(3)] == [True] * 3
    assert (gate.saved_ms, gate.saved_mj) == (pytest.approx(15.0), pytest.approx(90.0))
