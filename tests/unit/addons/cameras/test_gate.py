"""Which frames are skipped, which part of a frame is sent, and the replay that compares gates."""

from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.gates import Event, Replay, judged, record, replayed
from jetsel.addons.cameras.gate import Gate, GateSetting, gate_of
from jetsel.addons.cameras.labels import LabelTracker
from jetsel.addons.cameras.region import Region, fitting
from jetsel.base.errors import ConfigError
from jetsel.wire import Answer
from tests.unit.addons.cameras.answers import answer

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


FPS = 10
SHOWN = {10: 20, 30: 33, 50: 80}
Frame = tuple[float, np.ndarray]


Y, X = np.mgrid[0:240, 0:320]
SCENE = np.repeat((110 + 50 * np.sin(X / 9) * np.cos(Y / 7))[:, :, None], 3, 2)  # texture everywhere


def shown(objects: dict[int, int], n_frames: int, side: int = 36, levels: float = 60) -> Iterator[Frame]:
    """A still, noisy scene, and an object of 1.7 % of it. objects: from which frame on, until which."""
    drawn = np.random.default_rng(0)
    for number in range(n_frames):
        frame = SCENE + drawn.normal(0, 4, (240, 320, 3))
        if any(begin <= number < end for begin, end in objects.items()):
            frame[100 : 100 + side, 200 : 200 + side] += levels
        yield number / FPS, np.clip(frame, 0, 255).astype(np.uint8)


def sees(frame: np.ndarray) -> Answer:
    """A model that knows the object by its light, and gets every frame right."""
    return answer("dog" if frame[105:130, 205:230].mean() > SCENE[105:130, 205:230].mean() + 20 else "yard")


def test_a_replay_asks_what_the_live_gate_asks() -> None:
    frames = list(shown(SHOWN, 100))
    recorded = record(iter(frames), sees)
    for setting in (GateSetting("blocks", 6.0), GateSetting("edges", 12.0), GateSetting("histogram", 5.0)):
        gate, labels, asked = Gate(setting, 30.0), LabelTracker(3), []
        for now_s, frame in frames:
            is_skipped = gate.skips(frame, now_s) and labels.is_settled  # as Watch does
            if not is_skipped:
                gate.record_answer(5.0, None)
                labels.add_answer(sees(frame), now_s)
            asked.append(not is_skipped)
        assert replayed(recorded, Gate(setting, 30.0), 3).asked == asked


def test_an_event_is_reported_in_time_late_or_missed() -> None:
    full = Replay([True] * 4, [0, 1, 0, 0], [Event(0, 0), Event(1, 1), Event(3, 0), Event(20, 1)])
    late = Replay([True] * 4, [0, 0, 0, 0], [Event(0, 0), Event(3.5, 1), Event(3.75, 0), Event(20.5, 1)])
    result = judged(late, full, 1.0)
    assert (result.events_missed, result.delays_s, result.agreement) == (1, [0, 0.75, 0.5], 0.75)
    patient = judged(late, full, 3.0)
    assert (patient.events_missed, patient.largest_delay_s) == (0, 2.5)
