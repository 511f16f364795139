"""One region of a camera: its part of the frame, its gate, its label, and its counts."""

from __future__ import annotations

import cv2
import numpy as np

from jetsel.addons.cameras.gate import Gate, GateSetting
from jetsel.addons.cameras.labels import LabelChange, LabelTracker
from jetsel.base.errors import ConfigError
from jetsel.wire import Answer


class Region:
    """A rectangle in shares of the frame, 0 to 1, so that it holds when a camera changes its resolution."""

    def __init__(self, text: str) -> None:
        """Read X,Y,W,H; raises ConfigError with an example."""
        try:
            x, y, width, height = (float(part) for part in text.split(","))
        except ValueError:
            x = y = width = height = -1.0
        if not (0 <= x < x + width <= 1 and 0 <= y < y + height <= 1):
            raise ConfigError(f"region {text}: use X,Y,W,H as shares of the frame: 0.5,0,0.5,1 is its right half")
        self._shares = x, y, width, height

    def crop(self, frame: np.ndarray) -> np.ndarray:
        """Return the region of a frame (height, width[, 3]), at least one pixel, as a view."""
        x, y, width, height = self._shares
        high, wide = frame.shape[:2]
        left, top = min(int(x * wide), wide - 1), min(int(y * high), high - 1)
        right, bottom = max(round((x + width) * wide), left + 1), max(round((y + height) * high), top + 1)
        return frame[top:bottom, left:right]


def fitting(frame: np.ndarray, max_image_mb: float) -> np.ndarray:
    """Return the frame, halved until its pixels fit the daemon's limit."""
    while frame.nbytes > max_image_mb * 1e6:
        frame = cv2.resize(frame, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    return frame


class RegionView:
    """One region's state. name: None if it is the only one. frame_part: its last pixels, (height, width[, 3]) uint8."""

    def __init__(self, name: str | None, region: Region, gate: GateSetting | None, ask_again_s: float, stay: int):
        self.name, self.region = name, region
        self.gate, self._labels = Gate(gate, ask_again_s), LabelTracker(stay)
        self.n_sent = self.n_changes = 0
        self.current_label: LabelChange | None = None
        self.frame_part: np.ndarray | None = None

    def skips(self, frame: np.ndarray, now_s: float) -> bool:
        """Return whether to skip the region of a frame, and count it. No frame is skipped while a label changes."""
        self.frame_part = self.region.crop(frame)
        is_skipped = self.gate.skips(self.frame_part, now_s) and self._labels.is_settled
        self.gate.n_skipped += is_skipped
        return is_skipped

    def record_answer(self, answer: Answer, now_s: float) -> LabelChange | None:
        """Process the last frame's answer; return the change that it completes, else None. now_s: by time.time()."""
        self.gate.record_answer(answer.stages_ms.total, answer.energy_mj)
        change = self._labels.add_answer(answer, now_s)
        if change is not None:
            self.current_label = change
            self.n_changes += 1
        return change
