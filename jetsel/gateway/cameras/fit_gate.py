"""Which gate fits a camera: a clip of it is answered frame by frame once, and each gate is replayed over the answers.

As Reducto does for each camera (Li et al., Reducto: On-Camera Filtering for Resource-Efficient Real-Time Video
Analytics, SIGCOMM 2020, https://doi.org/10.1145/3387514.3405874), feature and threshold are those that skip the most
frames while the labels still agree with those of all frames. A replay runs the live gate's own code (`Gate`, `Labels`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from jetsel.base.errors import ConfigError
from jetsel.gateway.cameras.gate import FEATURES, Gate, GateSetting, described, gray_copy
from jetsel.gateway.cameras.labels import Labels, ReportedLabel, reported_label
from jetsel.gateway.cameras.source import Source
from jetsel.wire import Answer

_USUAL_FPS = 25.0  # of a clip that does not say
_MARGIN = 0.01  # share of the frames: a lower threshold that asks about these more is the safer one
THRESHOLDS = tuple(float(f"{0.5 * 1.1**number:.2g}") for number in range(56))
"""The thresholds that are tried, 0.5 to 95: each 10 % over the one before, and short to write."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


class Clip:
    """A video file, read as fast as it can be. Raises ConfigError if the source is something else or cannot be read.

    every_s: the least time between two frames, as of `jetsel watch --every`.
    """

    def __init__(self, source: Source, every_s: float = 0.0) -> None:
        if source.kind != "file":
            raise ConfigError(
                f"{source.name}: a gate is fitted to a video file; record one, for example with "
                "ffmpeg -i rtsp://... -t 600 -c copy door.mkv"
            )
        self._capture, self._every_s = cv2.VideoCapture(source.text, cv2.CAP_FFMPEG), every_s
        self._fps = self._capture.get(cv2.CAP_PROP_FPS) or _USUAL_FPS
        n_frames = max(0.0, self._capture.get(cv2.CAP_PROP_FRAME_COUNT))
        self.n_expected = int(n_frames / max(1.0, every_s * self._fps))
        """Frames, as the file's head states them: an estimate for progress alone; 0 if it states none."""

    def frames(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the time of each frame in the clip, in seconds, and its pixels, (height, width, 3) uint8 BGR."""
        number, next_s = -1, 0.0
        try:
            while self._capture.grab():
                number += 1
                stamp_s = self._capture.get(cv2.CAP_PROP_POS_MSEC) / 1e3
                now_s = stamp_s if stamp_s > 0 else number / self._fps
                if now_s < next_s:
                    continue
                good, frame = self._capture.retrieve()
                if good:
                    next_s = now_s + self._every_s
                    yield now_s, frame
        finally:
            self._capture.release()


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

    def part(self, begin: int, end: int) -> Recorded:
        """Return the frames from one number until before another."""
        return Recorded(self.times_s[begin:end], self.copies[begin:end], self.labels[begin:end], self.answers)


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


def replayed(recorded: Recorded, gate: Gate, seen: Sequence[np.ndarray], stay: int) -> Replay:
    """Run a gate over a clip as `Watch` runs it. seen: each frame, described for the gate's feature."""
    labels, replay, holds = Labels(stay), Replay([], [], []), -1
    for now_s, number, description in zip(recorded.times_s, recorded.labels, seen, strict=True):
        is_skipped = gate.skips_described(description, now_s) and labels.is_settled
        if is_skipped:
            gate.n_skipped += 1
        else:
            gate.answered(0.0, None)
            if labels.see(recorded.answers[number], now_s) is not None:
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

    def meets(self, agree: float, late_s: float) -> bool:
        """Whether enough labels agree, no event is missed and none is later."""
        return self.agreement >= agree and not self.events_missed and self.largest_delay_s <= late_s


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


class Found(NamedTuple):
    """The best threshold of a feature; setting: None if none meets the requirement, so that every frame is asked."""

    feature: str
    setting: GateSetting | None
    judged: Judged


class Fit(NamedTuple):
    """best: of all features, or None if none skips a frame. features: what each came to."""

    best: GateSetting | None
    features: list[Found]
    events: int


@dataclass(frozen=True)
class Requirement:
    """What a gate must meet, and what runs beside it; the options of `jetsel watch fit-gate` describe each."""

    stay: int = 3
    ask_again_s: float = 30.0
    agree: float = 0.98
    late_s: float = 1.0


def fitted(recorded: Recorded, wanted: Requirement, progress: Progress = lambda *_: None) -> Fit:
    """Return the feature and the threshold that skip the most frames and meet the requirement.

    Thresholds rise until the first that does not meet it: a higher one that does is luck. Of those that ask about
    hardly more frames than the best, the lowest is taken, as it is the farthest from missing something.
    """
    nothing = replayed(recorded, Gate(None, wanted.ask_again_s), recorded.copies, wanted.stay)
    none = judged(nothing, nothing, wanted.late_s)
    found = []
    for number, feature in enumerate(FEATURES):
        progress("fitting", number, len(FEATURES))
        found.append(_fitted(feature, recorded, nothing, wanted) or Found(feature, None, none))
    progress("fitting", len(FEATURES), len(FEATURES))
    best = _safest(found, none.frames)
    return Fit(best.setting if best.judged.frames_asked < none.frames else None, found, none.events)


def _fitted(feature: str, recorded: Recorded, full: Replay, wanted: Requirement) -> Found | None:
    seen = [described(copy, feature) for copy in recorded.copies]
    good: list[Found] = []
    for threshold in THRESHOLDS:
        setting = GateSetting(feature, threshold)
        replay = replayed(recorded, Gate(setting, wanted.ask_again_s), seen, wanted.stay)
        result = judged(replay, full, wanted.late_s)
        if not result.meets(wanted.agree, wanted.late_s):
            break
        good.append(Found(feature, setting, result))
    return _safest(good, len(seen)) if good else None


def _safest(found: Sequence[Found], n_frames: int) -> Found:
    """Return the first that asks about hardly more frames than the one that asks about the fewest."""
    fewest = min(one.judged.frames_asked for one in found)
    return next(one for one in found if one.judged.frames_asked <= fewest + _MARGIN * n_frames)
