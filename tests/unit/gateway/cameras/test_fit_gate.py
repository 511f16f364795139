"""The fitted gate skips frames, keeps the labels and misses no event; what it is replayed by is what runs live."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jetsel.base.errors import ConfigError
from jetsel.gateway.cameras.fit_gate import (
    Clip,
    Event,
    Recorded,
    Replay,
    Requirement,
    fitted,
    judged,
    record,
    replayed,
)
from jetsel.gateway.cameras.gate import FEATURES, Gate, GateSetting, described, difference, gray_copy
from jetsel.gateway.cameras.labels import Labels
from jetsel.gateway.cameras.source import Source, source_of
from jetsel.wire import Answer
from tests.system.watch.watchers import film
from tests.unit.gateway.cameras.answers import answer

FPS = 10
Frame = tuple[float, np.ndarray]


def scene(height: int = 240, width: int = 320) -> np.ndarray:
    """A picture with texture everywhere."""
    y, x = np.mgrid[0:height, 0:width]
    return np.repeat((110 + 50 * np.sin(x / 9) * np.cos(y / 7))[:, :, None], 3, 2)


def shown(objects: dict[int, int], n_frames: int, side: int = 36, levels: float = 60) -> Iterator[Frame]:
    """A still, noisy scene, and an object of 1.7 % of it. objects: from which frame on, until which."""
    drawn = np.random.default_rng(0)
    for number in range(n_frames):
        frame = scene() + drawn.normal(0, 4, (240, 320, 3))
        if any(begin <= number < end for begin, end in objects.items()):
            frame[100 : 100 + side, 200 : 200 + side] += levels
        yield number / FPS, np.clip(frame, 0, 255).astype(np.uint8)


def sees(frame: np.ndarray) -> Answer:
    """A model that knows the object by its light, and gets every frame right."""
    return answer("dog" if frame[105:130, 205:230].mean() > scene()[105:130, 205:230].mean() + 20 else "yard")


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return record(shown({30: 60, 90: 98, 150: 250}, 300), sees)


def test_each_frame_is_asked_once_and_no_frame_is_kept(recorded: Recorded) -> None:
    assert [one.wnid for one in recorded.answers] == ["yard", "dog"]
    assert recorded.labels[25:35] == [0] * 5 + [1] * 5
    assert {copy.nbytes for copy in recorded.copies} == {48 * 64}
    assert recorded.part(30, 60).times_s == recorded.times_s[30:60]


def test_the_fitted_gate_keeps_its_promise_when_it_is_replayed(recorded: Recorded) -> None:
    fit = fitted(recorded, Requirement())
    assert fit.best is not None
    assert [one.feature for one in fit.features] == list(FEATURES)
    full = replayed(recorded, Gate(None, 30.0), recorded.copies, 3)
    assert (sum(full.asked), len(full.events), fit.events) == (300, 7, 7)
    for found in fit.features:
        assert found.setting is not None
        seen = [described(copy, found.feature) for copy in recorded.copies]
        gate = Gate(found.setting, 30.0)
        result = judged(replayed(recorded, gate, seen, 3), full, 1.0)
        assert result == found.judged
        assert result.meets(0.98, 1.0)
        assert gate.n_skipped == 300 - result.frames_asked > 200


def test_a_replay_asks_what_the_live_gate_asks(recorded: Recorded) -> None:
    for setting in (GateSetting("blocks", 6.0), GateSetting("edges", 12.0), GateSetting("histogram", 5.0)):
        gate, labels, asked = Gate(setting, 30.0), Labels(3), []
        for now_s, frame in shown({30: 60, 90: 98, 150: 250}, 300):
            is_skipped = gate.skips(frame, now_s) and labels.is_settled  # as Watch does
            if not is_skipped:
                gate.answered(5.0, None)
                labels.see(sees(frame), now_s)
            asked.append(not is_skipped)
        seen = [described(copy, setting.feature) for copy in recorded.copies]
        assert replayed(recorded, Gate(setting, 30.0), seen, 3).asked == asked


def test_a_gate_that_opens_too_late_is_not_chosen(recorded: Recorded) -> None:
    blind = GateSetting("blocks", 200.0)
    replay = replayed(recorded, Gate(blind, 30.0), recorded.copies, 3)
    result = judged(replay, replayed(recorded, Gate(None, 30.0), recorded.copies, 3), 1.0)
    assert result.events_missed == 6
    assert not result.meets(0.0, 1.0)


def test_no_gate_is_chosen_if_none_meets_the_requirement() -> None:
    drawn = np.random.default_rng(0)
    frames = [(number / FPS, np.full((48, 64), 100, np.uint8)) for number in range(60)]
    recorded = record(frames, lambda _: answer(str(drawn.integers(3))))  # its answers have nothing to do with frames
    fit = fitted(recorded, Requirement(stay=1))
    assert fit.best is None
    assert [(one.setting, one.judged.frames_asked) for one in fit.features] == [(None, 60)] * 3


def test_an_event_is_reported_in_time_late_or_missed() -> None:
    full = Replay([True] * 4, [0, 1, 0, 0], [Event(0, 0), Event(1, 1), Event(3, 0), Event(20, 1)])
    late = Replay([True] * 4, [0, 0, 0, 0], [Event(0, 0), Event(3.5, 1), Event(3.75, 0), Event(20.5, 1)])
    result = judged(late, full, 1.0)
    assert (result.events_missed, result.delays_s, result.agreement) == (1, [0, 0.75, 0.5], 0.75)
    assert not result.meets(0.7, 1.0)
    patient = judged(late, full, 3.0)
    assert (patient.events_missed, patient.largest_delay_s) == (0, 2.5)
    assert patient.meets(0.7, 3.0)


def test_each_feature_sees_a_small_object_and_no_noise() -> None:
    for feature, threshold in (("blocks", 6.0), ("edges", 10.0), ("histogram", 6.0)):
        still, other, entered = (described(frame, feature) for _, frame in shown({2: 3}, 3))
        assert difference(still, other, feature) < threshold < difference(still, entered, feature)


def test_edges_ignore_light_and_histogram_ignores_what_moves_inside_of_a_cell() -> None:
    bright, dim = scene().astype(np.uint8), (scene() * 0.75).astype(np.uint8)
    differing = {
        feature: difference(described(bright, feature), described(dim, feature), feature) for feature in FEATURES
    }
    assert differing["edges"] < 5 < 25 < differing["blocks"]
    drawn = np.random.default_rng(0)
    copy = drawn.integers(0, 255, (48, 64)).astype(np.uint8)
    moved = copy.copy()
    moved[:8, :8] = drawn.permutation(copy[:8, :8].reshape(-1)).reshape(8, 8)  # leaves
    assert difference(described(copy, "histogram"), described(moved, "histogram"), "histogram") == 0
    assert difference(described(copy, "blocks"), described(moved, "blocks"), "blocks") > 20


def test_a_copy_is_described_as_its_frame_is() -> None:
    ((_, frame),) = shown({0: 1}, 1)
    for feature in FEATURES:
        assert np.array_equal(described(gray_copy(frame), feature), described(frame, feature))


def test_a_clip_is_read_to_its_end_with_times_of_its_own(tmp_path: Path) -> None:
    path = film(tmp_path / "clip.avi", [scene().astype(np.uint8)], 40, fps=20)
    source = source_of(str(path))
    times = [now_s for now_s, _ in Clip(source).frames()]
    assert times == pytest.approx([number / 20 for number in range(40)])
    assert Clip(source).n_expected == 40
    sparse = Clip(source, 0.5)
    assert [now_s for now_s, _ in sparse.frames()] == pytest.approx([0, 0.5, 1, 1.5])
    assert sparse.n_expected == 4
    with pytest.raises(ConfigError, match="video file"):
        Clip(Source("url", "rtsp://door", "rtsp://door"))
