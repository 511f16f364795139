"""Replays gates over a clip whose frames were all answered once, by the live gate's own code (`Gate`, `Labels`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from jetsel.addons.cameras.gate import Gate, gray_copy
from jetsel.addons.cameras.labels import LabelTracker, ReportedLabel, reported_label
from jetsel.wire import Answer

_USUAL_FPS = 25.0  # of a clip that does not say


def clip_frames(path: Path) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the time of each frame of a video file, in seconds, and its pixels, (height, width, 3) uint8 BGR."""
    capture, number = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG), -1
    fps = capture.get(cv2.CAP_PROP_FPS) or _USUAL_FPS
    try:
        while capture.grab():
            number += 1
            stamp_s = capture.get(cv2.CAP_PROP_POS_MSEC) / 1e3
            good, frame = capture.retrieve()
            if good:
                yield stamp_s if stamp_s > 0 else number / fps, frame
    finally:
        capture.release()


@dataclass(frozen=True)
class Recorded:
    """A clip's answers. A frame takes 3 kB here, and ten minutes at 25 frames a second 46 MB.

    times_s: of the frames. copies: their gray copies. labels: which of `answers` each got; an answer stands for all
    that report the same label.
    """

    times_s: list[float]
    copies: list[np.ndarray]
    labels: list[int]
    answers: list[Answer]


def record(frames: Iterable[tuple[float, np.ndarray]], ask: Callable[[np.ndarray], Answer]) -> Recorded:
    """Ask about each frame of a clip. frames: time in seconds and pixels, (height, width[, 3]) uint8."""
    recorded, known = Recorded([], [], [], []), dict[ReportedLabel, int]()
    for now_s, frame in frames:
        answer = ask(frame)
        number = known.setdefault(reported_label(answer), len(known))
        if number == len(recorded.answers):
            recorded.answers.append(answer)
        recorded.times_s.append(now_s)
        recorded.copies.append(gray_copy(frame))
        recorded.labels.append(number)
    return recorded


class Event(NamedTuple):
    """A settled change of the label: when, and the number of its answer."""

    time_s: float
    label: int


@dataclass(frozen=True)
class Replay:
    """What `jetsel watch` would have done.

    asked: whether each frame was classified. holds: the label after each, as in `Recorded.labels`; -1: none yet.
    """

    asked: list[bool]
    holds: list[int]
    events: list[Event]


def replayed(recorded: Recorded, gate: Gate, stay: int) -> Replay:
    """Run a gate over a clip as `Watch` runs it."""
    labels, replay, holds = LabelTracker(stay), Replay([], [], []), -1
    for now_s, number, copy in zip(recorded.times_s, recorded.labels, recorded.copies, strict=True):
        is_skipped = gate.skips(copy, now_s) and labels.is_settled
        if is_skipped:
            gate.n_skipped += 1
        else:
            gate.record_answer(0.0, None)
            if labels.add_answer(recorded.answers[number], now_s) is not None:
                holds = number
                replay.events.append(Event(now_s, number))
        replay.asked.append(not is_skipped)
        replay.holds.append(holds)
    return replay


@dataclass(frozen=True)
class Judged:
    """A replay beside that of all frames.

    agreement: the share of the frames at which both hold the same label. events: those of all frames; delays_s: of
    each that was reported, too, in seconds; the others were missed.
    """

    frames: int
    frames_asked: int
    agreement: float
    events: int
    delays_s: list[float]

    @property
    def events_missed(self) -> int:
        """How many events were not reported while their label held, nor within the time allowed."""
        return self.events - len(self.delays_s)

    @property
    def largest_delay_s(self) -> float:
        """The largest delay of a reported event, in seconds."""
        return max(self.delays_s, default=0.0)


def judged(replay: Replay, full: Replay, late_s: float) -> Judged:
    """Compare a replay with that of all frames. An event counts until the next one, and for `late_s` at least."""
    delays_s, reported = [], list(replay.events)
    ends_s = [event.time_s for event in full.events[1:]] + [float("inf")]
    for event, end_s in zip(full.events, ends_s, strict=True):
        last_s = max(end_s, event.time_s + late_s)
        same = (at for at, one in enumerate(reported) if one.label == event.label and event.time_s <= one.time_s)
        at = next(same, None)
        if at is not None and reported[at].time_s <= last_s:
            delays_s.append(reported[at].time_s - event.time_s)
            del reported[: at + 1]
    pairs = zip(replay.holds, full.holds, strict=True)
    agreement = float(np.mean([one == other for one, other in pairs])) if full.holds else 1.0
    return Judged(len(full.holds), sum(replay.asked), agreement, len(full.events), delays_s)
