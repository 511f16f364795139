"""A frame that hardly differs from the last one that was answered is skipped, and what that saves is counted."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.addons.cameras.gate import Gate, GateSetting, gate_of
from jetsel.base.errors import ConfigError

TWO_LEVELS = GateSetting("blocks", 2.0)


def gray(level: int) -> np.ndarray:
    return np.full((120, 160, 3), level, np.uint8)


def test_what_hardly_differs_from_the_answered_frame_is_skipped() -> None:
    gate = Gate(TWO_LEVELS, 30.0)
    assert not gate.skips(gray(100), 0.0)
    gate.answered(5.0, None)
    assert [gate.skips(gray(level), 0.0) for level in (100, 101, 98)] == [True, True, False]


def test_a_slow_change_adds_up_as_frames_are_compared_with_the_answered_one() -> None:
    gate = Gate(TWO_LEVELS, 30.0)
    gate.skips(gray(100), 0.0)
    gate.answered(5.0, None)
    assert [gate.skips(gray(level), 0.0) for level in (101, 102)] == [True, False]


def test_a_frame_without_an_answer_is_asked_about_again() -> None:
    gate = Gate(TWO_LEVELS, 30.0)
    assert not gate.skips(gray(100), 0.0)
    assert not gate.skips(gray(100), 0.0)


def test_nothing_is_skipped_without_a_setting_nor_after_forgetting() -> None:
    off, on = Gate(None, 30.0), Gate(TWO_LEVELS, 30.0)
    for gate in (off, on):
        gate.skips(gray(100), 0.0)
        gate.answered(5.0, None)
    on.forget()
    assert not off.skips(gray(100), 0.0)
    assert not on.skips(gray(100), 0.0)


def test_a_small_object_is_seen_wherever_it_is_and_noise_is_not() -> None:
    drawn = np.random.default_rng(0)
    for _ in range(20):
        gate = Gate(GateSetting("blocks", 6.0), 30.0)
        noise = drawn.normal(0, 5, (2, 480, 640, 3))
        still, next_still = np.clip(100 + noise, 0, 255).astype(np.uint8)
        gate.skips(still, 0.0)
        gate.answered(5.0, None)
        assert gate.skips(next_still, 0.1)
        left, top = drawn.integers(0, 640 - 48), drawn.integers(0, 480 - 48)
        next_still[top : top + 48, left : left + 48] += 40  # 0.75 % of the frame
        assert not gate.skips(next_still, 0.2)


def test_an_unchanged_scene_is_asked_about_again_after_its_time() -> None:
    gate = Gate(TWO_LEVELS, 30.0)
    gate.skips(gray(100), 0.0)
    gate.answered(5.0, None)
    assert [gate.skips(gray(100), now_s) for now_s in (29.9, 30.0)] == [True, False]


def test_a_setting_is_read_as_it_is_printed_and_what_is_none_is_named() -> None:
    assert gate_of(str(TWO_LEVELS), "--gate") == TWO_LEVELS
    assert gate_of("none", "--gate") is None
    for text in ("blocks", "blocks:0", "blocks:nan", "bricks:3", "3"):
        with pytest.raises(ConfigError, match=f"--gate {text}: use FEATURE:THRESHOLD"):
            gate_of(text, "--gate")


def test_gray_frames_are_compared_too() -> None:
    gate = Gate(TWO_LEVELS, 30.0)
    gate.skips(gray(100)[:, :, 0], 0.0)
    gate.answered(5.0, None)
    assert gate.skips(gray(101)[:, :, 0], 0.0)


def test_savings_are_at_the_mean_of_the_answered_and_unknown_without_any() -> None:
    gate = Gate(TWO_LEVELS, 30.0)
    assert (gate.saved_ms, gate.saved_mj) == (None, None)
    for level, took_ms, energy_mj in ((50, 4.0, 30.0), (100, 6.0, None)):
        gate.skips(gray(level), 0.0)
        gate.answered(took_ms, energy_mj)
    gate.n_skipped += 3
    assert (gate.saved_ms, gate.saved_mj) == (pytest.approx(15.0), pytest.approx(90.0))
