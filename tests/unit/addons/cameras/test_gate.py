"""Which frames are skipped, and which part of a frame is sent."""

import numpy as np
import pytest

from jetsel.addons.cameras.gate import Gate, GateSetting, gate_of
from jetsel.addons.cameras.region import Region, fitting
from jetsel.base.errors import ConfigError

TWO_LEVELS = GateSetting("blocks", 2.0)


def gray(level: int) -> np.ndarray:
    return np.full((120, 160, 3), level, np.uint8)


def answered(level: int, setting: GateSetting | None = TWO_LEVELS) -> Gate:
    """A gate whose last answered frame, at 0 s, has this level."""
    gate = Gate(setting, 30.0)
    assert not gate.skips(gray(level), 0.0)
    gate.record_answer(5.0, None)
    return gate


def test_frames_are_compared_with_the_answered_one_so_that_a_slow_change_adds_up() -> None:
    gate = answered(100)
    assert [gate.skips(gray(level), 0.0) for level in (100, 101, 98, 102)] == [True, True, False, False]
    assert gate.skips(gray(101)[:, :, 0], 0.0), "gray frames, too"


def test_a_frame_is_asked_about_again_without_an_answer_without_a_setting_after_its_time_and_after_forgetting() -> None:
    unanswered, off, on = Gate(TWO_LEVELS, 30.0), answered(100, None), answered(100)
    assert [unanswered.skips(gray(100), 0.0) for _ in range(2)] == [False, False]
    assert not off.skips(gray(100), 0.0)
    assert [on.skips(gray(100), now_s) for now_s in (29.9, 30.0)] == [True, False]
    on.forget()
    assert not on.skips(gray(100), 0.0)


def test_a_setting_is_read_as_it_is_printed_and_what_is_none_is_named() -> None:
    assert gate_of("blocks:2", "--gate") == TWO_LEVELS
    assert gate_of("none", "--gate") is None
    for text in ("blocks", "blocks:0", "blocks:nan", "bricks:3", "3"):
        with pytest.raises(ConfigError, match=f"--gate {text}: use FEATURE:THRESHOLD"):
            gate_of(text, "--gate")


def test_savings_are_at_the_mean_of_the_answered_and_unknown_without_any() -> None:
    gate = Gate(TWO_LEVELS, 30.0)
    assert (gate.saved_ms, gate.saved_mj) == (None, None)
    for level, took_ms, energy_mj in ((50, 4.0, 30.0), (100, 6.0, None)):
        gate.skips(gray(level), 0.0)
        gate.record_answer(took_ms, energy_mj)
    gate.n_skipped += 3
    assert (gate.saved_ms, gate.saved_mj) == (pytest.approx(15.0), pytest.approx(90.0))


FRAME = np.arange(120 * 160 * 3, dtype=np.uint8).reshape(120, 160, 3)


def test_a_region_is_its_share_of_the_frame() -> None:
    assert np.array_equal(Region("0.5,0.25,0.25,0.5").crop(FRAME), FRAME[30:90, 80:120])
    assert np.array_equal(Region("0,0,1,1").crop(FRAME), FRAME)


def test_a_region_has_a_pixel_at_least() -> None:
    assert Region("0.999,0.999,0.0001,0.0001").crop(FRAME).shape == (1, 1, 3)


@pytest.mark.parametrize(
    "text", ["", "1,2,3", "a,b,c,d", "0,0,0,1", "0.5,0,0.6,1", "-0.1,0,1,1", "100,50,200,100", "nan,0,1,1"]
)
def test_what_is_no_region_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="is its right half"):
        Region(text)


def test_a_frame_that_fits_is_sent_as_it_is_and_others_are_halved() -> None:
    assert fitting(FRAME, 0.0576) is FRAME
    assert fitting(FRAME, 0.0575).shape == (60, 80, 3)
    assert fitting(FRAME, 0.01).shape == (30, 40, 3)
