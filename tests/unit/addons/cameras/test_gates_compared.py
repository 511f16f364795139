"""The features of gates, and the replay that compares gates: it asks what the live gate asks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.gates import Event, Replay, judged, record, replayed
from jetsel.addons.cameras.gate import Gate, GateSetting, described
from jetsel.addons.cameras.labels import Labels
from jetsel.wire import Answer
from tests.unit.addons.cameras.answers import answer

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
        gate, labels, asked = Gate(setting, 30.0), Labels(3), []
        for now_s, frame in frames:
            is_skipped = gate.skips(frame, now_s) and labels.is_settled  # as Watch does
            if not is_skipped:
                gate.answered(5.0, None)
                labels.see(sees(frame), now_s)
            asked.append(not is_skipped)
        seen = [described(copy, setting.feature) for copy in recorded.copies]
        assert replayed(recorded, Gate(setting, 30.0), seen, 3).asked == asked


def test_an_event_is_reported_in_time_late_or_missed() -> None:
    full = Replay([True] * 4, [0, 1, 0, 0], [Event(0, 0), Event(1, 1), Event(3, 0), Event(20, 1)])
    late = Replay([True] * 4, [0, 0, 0, 0], [Event(0, 0), Event(3.5, 1), Event(3.75, 0), Event(20.5, 1)])
    result = judged(late, full, 1.0)
    assert (result.events_missed, result.delays_s, result.agreement) == (1, [0, 0.75, 0.5], 0.75)
    patient = judged(late, full, 3.0)
    assert (patient.events_missed, patient.largest_delay_s) == (0, 2.5)
